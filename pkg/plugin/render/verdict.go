package render

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Verdicts prints a line for each object: what it is called, the verdict, how many servers are in sync, and why not all. The namespace is
// shown when spaces is true.
func Verdicts(items []v1alpha1.SyncStatus, spaces bool, now time.Time, p Palette) string {
	if len(items) == 0 {
		return ""
	}
	rows := [][]cell{{{"NAMESPACE", bold}, {"NAME", bold}, {"ZONE", bold}, {"PHASE", bold}, {"SERVERS", bold}, {"MESSAGE", bold}}}
	for i := range items {
		s := &items[i]
		namespace := ""
		if spaces {
			namespace = s.Namespace
		}
		rows = append(rows, []cell{
			{text: namespace}, {text: s.Name}, {text: s.Zone}, {string(s.Status.Phase), phaseColor(s.Status.Phase)}, {text: serverCount(s)},
			{text: statusMessage(s, now)},
		})
	}
	return p.formatTable(rows)
}

// Summary counts, for the end of a report.
func Summary(items []v1alpha1.SyncStatus, p Palette) string {
	in := 0
	for i := range items {
		if items[i].Status.InSync {
			in++
		}
	}
	if in == len(items) {
		return p.paint(green, fmt.Sprintf("%d of %d in sync", in, len(items)))
	}
	return p.paint(red, fmt.Sprintf("%d of %d not in sync", len(items)-in, len(items)))
}

// Change is the log line of a changed object; Gone is for a deleted one.
func Change(s *v1alpha1.SyncStatus, at time.Time, p Palette) string {
	phase := p.paint(phaseColor(s.Status.Phase), string(s.Status.Phase))
	return strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", formatTime(at), objectPath(s), phase, serverCount(s), oneLine(statusMessage(s, at))), " ") + "\n"
}

// Gone is the log line of a deleted object.
func Gone(s *v1alpha1.SyncStatus, at time.Time, p Palette) string {
	return fmt.Sprintf("%s %s %s\n", formatTime(at), objectPath(s), p.paint(faint, "gone"))
}

func formatTime(at time.Time) string { return at.Format(time.TimeOnly) }

func objectPath(s *v1alpha1.SyncStatus) string { return s.Namespace + "/" + s.Name }

// serverCount is servers in sync/servers; empty while the servers are unknown.
func serverCount(s *v1alpha1.SyncStatus) string {
	if s.Summary.Servers == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Summary.InSync, s.Summary.Servers)
}

// statusMessage says why an object is not in sync, and of one that is, for how long resolvers may still have what was before.
func statusMessage(s *v1alpha1.SyncStatus, now time.Time) string {
	if s.Status.FailureReason != "" {
		return s.Status.FailureReason + ": " + s.Status.FailureMessage
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionPropagated); c != nil && !s.Status.InSync {
		return c.Message // The phase follows from it.
	}
	return cacheNote(s, now)
}

func cacheNote(s *v1alpha1.SyncStatus, now time.Time) string {
	if s.CachesExpireAt == nil || !s.CachesExpireAt.After(now) {
		return ""
	}
	return "resolvers may have the old data cached for " + s.CachesExpireAt.Sub(now).Round(time.Second).String()
}
