package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// maxLag is how long a change may have no status before it is worth saying.
const maxLag = time.Minute

// readObjects are the kinds that could be read; the finding is for a check that needs them when none could.
func (f *Facts) readObjects() (kinds []Objects, finding Finding) {
	finding = skippedFor("no kind could be listed")
	for _, k := range f.Objects {
		switch {
		case k.Err == nil:
			kinds = append(kinds, k.Value)
		case !apierrors.IsNotFound(k.Err): // The check of definitions has those.
			finding = unread(k.Request, k.Err)
		}
	}
	return kinds, finding
}

// nothingOf is the finding of a check of something that no object has, as far as objects of a kind could be listed.
func (f *Facts) nothingOf(kind, text string) Finding {
	for _, k := range f.Objects {
		if k.Value.Kind == kind && k.Err != nil {
			return unread(k.Request, k.Err)
		}
	}
	return ok("%s", text)
}

// judgeStatuses looks for statuses that have been about an older generation for long.
func judgeStatuses(f *Facts) Finding {
	kinds, finding := f.readObjects()
	if len(kinds) == 0 {
		return finding
	}
	var old []string
	count := 0
	for _, k := range kinds {
		count += k.Count
		for _, o := range k.Lagging {
			if f.Now.Sub(o.Changed) > maxLag {
				old = append(old, fmt.Sprintf("%s %s has generation %d, and a status of %d", k.Kind, nameOf(o.Key), o.Generation, o.Observed))
			}
		}
	}
	if len(old) > 0 {
		return warning(fmt.Sprintf("kubectl -n %s logs deployment/%s; docs/runbooks/alerts.md, LockstepStatusWritesFailing", f.Namespace, controllerName),
			"old status of %d of %s: %s", len(old), status.CountOf(count, "object"), joinSome(old, "; "))
	}
	return ok("no old status among %s", status.CountOf(count, "object"))
}

// isDeclaration is true for kinds that people write for a name: what is wrong with such an object is its author's.
func isDeclaration(kind string) bool {
	return strings.HasSuffix(kind, "Record") || kind == "DNSEndpoint"
}

// nameOf is an object's name, with its namespace if it has one.
func nameOf(key types.NamespacedName) string { return strings.TrimPrefix(key.String(), "/") }

// judgeReady counts what is not Ready by reason. Endpoints of no zone are no fault: other programs use that kind as well.
func judgeReady(f *Facts) Finding {
	kinds, finding := f.readObjects()
	if len(kinds) == 0 {
		return finding
	}
	counts, examples, level, total := map[string]int{}, map[string]string{}, OK, 0
	for _, k := range kinds {
		total += k.Count
		for _, o := range k.Unready {
			if o.Reason == status.NoMatchingZone && k.Kind == "DNSEndpoint" {
				continue
			}
			key := k.Kind + " " + cmp.Or(o.Reason, "without a status")
			if counts[key]++; examples[key] == "" {
				examples[key] = fmt.Sprintf("%s %s: %s", k.Kind, nameOf(o.Key), o.Message)
			}
			if level != Failure {
				level = Warning
			}
			if !isDeclaration(k.Kind) {
				level = Failure
			}
		}
	}
	if level == OK {
		return ok("none of %s is reported as not ready", status.CountOf(total, "object"))
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var texts []string
	for _, r := range reasons {
		texts = append(texts, fmt.Sprintf("%d %s", counts[r], r))
	}
	return Finding{
		Level: level, Found: fmt.Sprintf("not ready: %s; for example %s", joinSome(texts, ", "), examples[reasons[0]]),
		Remedy: "docs/reference/api.md explains the reasons; kubectl get dnszones,bind9instances,bind9clusters,dnsproviders -A",
	}
}

// judgeInSync counts the verdicts that are bad. Failed ones have a reason in the check before, and Propagating ones need time only.
func judgeInSync(f *Facts) Finding {
	if finding, bad := unreadStatuses(f.OutOfSync); bad {
		return finding
	}
	phases := map[v1alpha1.Phase]int{}
	var first string
	for _, s := range f.OutOfSync.Value.Items {
		phases[s.Status.Phase]++
		if first == "" && s.Status.Phase == v1alpha1.PhaseOutOfSync {
			first = s.Namespace + "/" + s.Name
		}
	}
	remedy := "kubectl lockstep status -A; kubectl lockstep diff shows what is different"
	failed := ""
	if n := phases[v1alpha1.PhaseFailed]; n > 0 {
		failed = fmt.Sprintf(", %d Failed", n)
	}
	switch out, unknown := phases[v1alpha1.PhaseOutOfSync], phases[v1alpha1.PhaseUnknown]; {
	case out > 0:
		return failure(remedy, "%d OutOfSync, %d Unknown, %d Propagating%s; the first is %s", out, unknown, phases[v1alpha1.PhasePropagating], failed, first)
	case unknown+phases[v1alpha1.PhaseFailed] > 0:
		return warning(remedy, "%d Unknown, %d Propagating%s", unknown, phases[v1alpha1.PhasePropagating], failed)
	case phases[v1alpha1.PhasePropagating] > 0:
		return ok("%d Propagating: on their way", phases[v1alpha1.PhasePropagating])
	}
	return ok("nothing is out of sync")
}
