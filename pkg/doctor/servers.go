package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

const instanceKind = "Bind9Instance"

// unreadStatuses is the finding of a check that needs SyncStatuses; the check "answers" says why there are none.
func unreadStatuses(read Fact[Statuses]) (Finding, bool) {
	if read.Err == nil {
		return Finding{}, false
	}
	return skippedFor("SyncStatus does not answer, or you may not list it"), true
}

// judgeReachable judges whether servers answer the API server, which is where zones are asked from.
func judgeReachable(f *Facts) Finding {
	if finding, bad := unreadStatuses(f.Instances); bad {
		return finding
	}
	silent, remedy, all := f.silentPods()
	for _, p := range f.Providers {
		for _, s := range p.Status.Servers {
			if all++; !s.Reachable {
				silent = append(silent, fmt.Sprintf("%s/%s at %s: %s", p.Namespace, p.Name, s.Address, s.Message))
				remedy = fmt.Sprintf("kubectl -n %s describe dnsprovider %s", p.Namespace, p.Name)
			}
		}
	}
	switch {
	case all == 0:
		return ok("there are no servers")
	case len(silent) > 0:
		return failure(remedy, "%d of %d servers do not serve: %s", len(silent), all, joinSome(silent, "; "))
	}
	return ok("the API server reaches %s", status.CountOf(all, "server"))
}

// silentPods lists the pods of instances that do not answer, or are not ready to; all counts the pods.
func (f *Facts) silentPods() (silent []string, remedy string, all int) {
	for _, s := range f.Instances.Value.Items {
		for _, row := range s.Servers {
			all++
			if row.State == v1alpha1.StateUnreachable || !row.PodReady {
				silent = append(silent, fmt.Sprintf("%s/%s: %s", s.Namespace, row.Pod, row.Message))
				remedy = fmt.Sprintf("kubectl -n %s describe pod %s", s.Namespace, row.Pod)
			}
		}
	}
	return silent, remedy, all
}

// judgeSidecars judges whether sidecars answer the API server.
func judgeSidecars(f *Facts) Finding {
	if finding, bad := unreadStatuses(f.Instances); bad {
		return finding
	}
	var failing []string
	var remedy string
	asked := 0
	for _, s := range f.Instances.Value.Items {
		for _, row := range s.Servers {
			if row.Sidecar != "" {
				asked++
			}
			if row.Sidecar != "" && row.Sidecar != status.ReasonReady {
				failing = append(failing, fmt.Sprintf("%s/%s: %s", s.Namespace, row.Pod, row.Sidecar))
				remedy = fmt.Sprintf("kubectl -n %s logs %s -c bindcar; docs/runbooks/alerts.md, LockstepSidecarCallsFailing", s.Namespace, row.Pod)
			}
		}
	}
	if len(failing) > 0 {
		return failure(remedy, "%d of %d sidecars do not work: %s", len(failing), asked, joinSome(failing, "; "))
	}
	if asked == 0 {
		return ok("there are none")
	}
	return ok("the API server reaches %s", status.CountOf(asked, "sidecar"))
}

// badStates are states of a server that time does not mend.
var badStates = []v1alpha1.ServerState{
	v1alpha1.StateUnreachable, v1alpha1.StateRefused, v1alpha1.StateNotLoaded, v1alpha1.StateLame, v1alpha1.StateDivergent, v1alpha1.StateMissing,
	v1alpha1.StateShadowed, v1alpha1.StateBogus,
}

// judgeTransfers judges what servers answer about their zones.
func judgeTransfers(f *Facts) Finding {
	if finding, bad := unreadStatuses(f.OutOfSync); bad {
		return finding
	}
	var bad []string
	var remedy string
	for _, s := range f.OutOfSync.Value.Items {
		if s.ObjectRef.Kind != "DNSZone" {
			continue
		}
		for i := range s.Servers {
			row := &s.Servers[i]
			if slices.Contains(badStates, row.State) && (row.PodReady || row.Provider != "") { // "reachable" has the other pods
				bad = append(bad, fmt.Sprintf("%s on %s is %s: %s", s.Zone, row.ServerName(), row.State, row.Message))
				remedy = fmt.Sprintf("kubectl lockstep -n %s tree dnszone/%s; docs/runbooks/alerts.md, LockstepTransfersFailing", s.Namespace, s.ObjectRef.Name)
			}
		}
	}
	if len(bad) > 0 {
		return failure(remedy, "%s", joinSome(bad, "; "))
	}
	return ok("every server gives the API server its zones")
}

// isAboutTime recognizes the message that a signature was refused for its time (RFC 8945 section 5.2.3).
func isAboutTime(message string) bool { return strings.Contains(message, "BADTIME") }

// judgeServerClocks looks for servers that refuse signatures for their time.
func judgeServerClocks(f *Facts) Finding {
	var wrong []string
	note := func(server, message string) {
		if isAboutTime(message) && !slices.Contains(wrong, server) {
			wrong = append(wrong, server)
		}
	}
	for _, read := range []Fact[Statuses]{f.Instances, f.OutOfSync} {
		for _, s := range read.Value.Items {
			for i := range s.Servers {
				note(s.Servers[i].ServerName(), s.Servers[i].Message)
			}
		}
	}
	for _, p := range f.Providers {
		for _, s := range p.Status.Servers {
			note(p.Name+"/"+s.Address, s.Message)
		}
	}
	kinds, _ := f.readObjects()
	for _, o := range kinds {
		for _, u := range o.Unready {
			note(o.Kind+" "+nameOf(u.Key), u.Message)
		}
	}
	switch {
	case len(wrong) > 0:
		return failure("correct the clocks of the servers' nodes (NTP): TSIG allows five minutes", "BADTIME is reported of %s", joinSome(wrong, ", "))
	case f.Instances.Err != nil && len(kinds) == 0:
		return skippedFor("nothing that would know could be read")
	}
	return ok("no server refuses a signature for its time")
}

// judgeRotation judges whether keys are replaced when they are due.
func judgeRotation(f *Facts) Finding {
	var overdue []string
	var remedy string
	rotated := 0
	for _, i := range f.StoredInstances {
		at := i.Status.RNDCKeyRotation
		if at == nil || at.RotateAt == nil {
			continue
		}
		if rotated++; f.Now.Sub(at.RotateAt.Time) > rotationGrace {
			overdue = append(overdue, fmt.Sprintf("%s/%s since %s", i.Namespace, i.Name, at.RotateAt.UTC().Format(time.RFC3339)))
			remedy = fmt.Sprintf("kubectl -n %s logs deployment/%s; kubectl -n %s describe bind9instance %s", f.Namespace, fleetName, i.Namespace, i.Name)
		}
	}
	switch {
	case len(overdue) > 0:
		return warning(remedy, "the keys of %s are due: %s", status.CountOf(len(overdue), "instance"), joinSome(overdue, ", "))
	case rotated == 0:
		return f.nothingOf(instanceKind, "no instance rotates its keys")
	}
	return ok("the keys of %s are rotated in time", status.CountOf(rotated, "instance"))
}
