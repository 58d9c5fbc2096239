package doctor

import (
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// Level is the result of a check.
type Level string

// The results, from good to bad.
const (
	OK      Level = "ok"
	Skipped Level = "skipped"
	Warning Level = "warning"
	Failure Level = "failure"
)

// Finding is what one check found.
type Finding struct {
	// Group is the part of the installation, Check what was looked at there.
	Group string `json:"group"`
	Check string `json:"check"`
	Level Level  `json:"result"`
	// Found is a sentence. Remedy is what to do about it, with the command if there is one; empty if there is nothing to do.
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, Found: fmt.Sprintf(format, args...)}
}

func warning(remedy, format string, args ...any) Finding {
	return Finding{Level: Warning, Found: fmt.Sprintf(format, args...), Remedy: remedy}
}

func failure(remedy, format string, args ...any) Finding {
	return Finding{Level: Failure, Found: fmt.Sprintf(format, args...), Remedy: remedy}
}

// skippedFor is the finding of a check whose facts nobody has asked for, or could ask for.
func skippedFor(reason string) Finding { return Finding{Level: Skipped, Found: reason} }

// unread is the finding of a check whose facts could not be read. What the user may not read says nothing about the installation.
func unread(request string, err error) Finding {
	if apierrors.IsForbidden(err) {
		return skippedFor("you may not " + request)
	}
	return failure("see whether kube-apiserver works: kubectl get --raw '/readyz?verbose'", "could not %s: %v", request, err)
}

// Report is all findings, in the order of the checks.
type Report []Finding

// Count counts the findings of a level.
func (r Report) Count(level Level) (n int) {
	for _, f := range r {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Healthy reports whether there is neither a warning nor a failure.
func (r Report) Healthy() bool { return r.Count(Warning)+r.Count(Failure) == 0 }

// Blind reports whether nothing of Lockstep could be read, but at most what kube-apiserver says of itself.
func (r Report) Blind() bool {
	return !slices.ContainsFunc(r, func(f Finding) bool {
		return f.Level != Skipped && (f.Group != groupInstallation || f.Check != checkKubernetes && f.Check != checkClocks)
	})
}

// MarshalJSON implements json.Marshaler: the findings under "checks", and how many have which result.
func (r Report) MarshalJSON() ([]byte, error) {
	counts := map[Level]int{}
	for _, level := range []Level{OK, Skipped, Warning, Failure} {
		counts[level] = r.Count(level)
	}
	return json.Marshal(map[string]any{"checks": []Finding(r), "summary": counts})
}

// joinSome names the first few things of a kind.
func joinSome(texts []string, separator string) string {
	return status.JoinSome(texts, status.Few, separator)
}
