package statuswriter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// zoneInterval is the least time between two writes of a zone's status that nobody waits for.
const zoneInterval = time.Second

// zoneOutcome is what a zone's status is computed from, and what was written last.
type zoneOutcome struct {
	// latest is the latest outcome, without what nobody needs any more, and unwritten when the first one came that no status
	// has had.
	latest    SyncCompleted
	unwritten time.Time
	// waiting are objects to look at again when the outcome is another one.
	waiting map[source.ObjectKey]struct{}
	// verdicts and generation are what was written last, at written; all zero before the first time.
	verdicts   status.ZoneVerdicts
	generation int64
	written    time.Time
}

// writeDelay is how long a status should wait. What flips a condition or answers another generation of the spec does not wait: that is
// what people wait for. That a change is on its way to the secondaries, or has arrived there, is no such thing. The former waits longer,
// since it will have arrived in a moment: a status that lists a thousand records would be written twice for each change.
func (z *zoneOutcome) writeDelay(v status.ZoneVerdicts, now time.Time) time.Duration {
	isTransfer := v.Ready.Status == z.verdicts.Ready.Status && (v.Progressing.Holds() || z.verdicts.Progressing.Holds())
	if z.written.IsZero() || z.generation != z.latest.Zone.Generation || v.Flipped(z.verdicts) && !isTransfer {
		return 0
	}
	since := z.written
	if v.Progressing.Holds() && z.unwritten.After(since) {
		since = z.unwritten
	}
	return since.Add(zoneInterval).Sub(now)
}

// writeZone writes the status of a zone, if it differs. A positive duration means that it is too early.
func (w *Writer) writeZone(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	w.mu.Lock()
	z := w.zones[key]
	if z == nil {
		w.mu.Unlock()
		return 0, nil
	}
	e, before := z.latest, *z
	w.mu.Unlock()
	facts := zoneFacts(e)
	verdicts := status.ZoneVerdictsOf(facts)
	if wait := before.writeDelay(verdicts, w.Now()); wait > 0 {
		return wait, nil
	}
	zone := &v1beta1.DNSZone{}
	if err := w.Client.Get(ctx, key, zone); client.IgnoreNotFound(err) != nil {
		return 0, err
	} else if err != nil || zone.UID != e.Zone.UID || v1beta1.IsGoing(zone) {
		return 0, nil // Skip status writes for zones being deleted: bulk deletion is faster.
	}
	facts.Instances, facts.Providers, facts.Timeout = summarizeInstances(e.Servers), summarizeProviders(e.Servers, e.Backends), w.ZoneTimeout
	facts.Records = w.listRecords(ctx, e, facts.Ready, zone.Status.Records)
	next := status.Zone(zone.Status, facts, e.At)
	if !equality.Semantic.DeepEqual(next, zone.Status) {
		if err := w.writeStatus(ctx, source.ZoneKind, zone, &next); err != nil {
			return 0, err
		}
		w.recordZone(zone, zone.Status, next)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	z.verdicts, z.generation, z.written, z.unwritten = verdicts, e.Zone.Generation, w.Now(), time.Time{}
	if z.latest.At.After(e.At) {
		z.unwritten = z.written
	}
	return 0, nil
}

// zoneFacts counts; it costs what is not programmed, not what the zone holds.
func zoneFacts(e SyncCompleted) status.ZoneFacts {
	f := status.ZoneFacts{
		Generation: e.Zone.Generation, Serial: e.Serial, SerialKnown: e.SerialKnown, Programmed: e.Programmed, Failure: e.Failure, Servers: len(e.Servers),
		Paused: e.Paused, Pending: e.Pending, Foreign: e.Foreign, Remark: remarkOn(e), Arrivals: e.Arrivals, DNSSEC: e.DNSSEC, DNSSECKnown: e.DNSSECKnown, Delegated: e.Delegated,
		HeldPlan: e.HeldPlan, Guarded: e.Guarded,
		Contested: e.Contested,
	}
	for _, s := range e.Servers {
		if s.Current {
			f.Current++
		}
		if errors.Is(s.Err, host.ErrTransfer) && f.Untransferred == "" {
			f.Untransferred = s.Pod + ": " + s.Err.Error()
		}
	}
	for _, key := range e.ForeignSample {
		f.ForeignSample = append(f.ForeignSample, key.String())
	}
	if e.Desired != nil {
		f.Unready, f.Elsewhere = countUnready(e), e.Desired.Elsewhere
		f.Ready = e.Desired.Declarations.Len() - f.Elsewhere - f.Unready
		f.Waiting = e.Desired.NameServers.Waiting
	}
	return f
}

// countUnready counts the declarations that are not programmed, besides those for other programs.
func countUnready(e SyncCompleted) int {
	if !e.Programmed.Holds() {
		return e.Desired.Declarations.Len() - e.Desired.Elsewhere
	}
	count := e.Desired.Refused - e.Desired.Elsewhere
	for key := range e.Unprogrammed {
		set, _ := e.Desired.RRsets.Get(key)
		owners := map[source.ObjectKey]struct{}{}
		for _, owner := range slices.Concat(set.Owners...) {
			owners[owner.Key()] = struct{}{}
		}
		for owner := range owners {
			count += countAccepted(e.Desired, owner, key)
		}
	}
	return count
}

// countAccepted counts the declarations of an object that are part of an RRset.
func countAccepted(zone *source.Zone, owner source.ObjectKey, key rrset.Key) (count int) {
	for _, d := range zone.Of(owner) {
		if d.Accepted && d.Key == key {
			count++
		}
	}
	return count
}

func remarkOn(e SyncCompleted) string {
	remarks := slices.DeleteFunc([]string{alsoSelectedRemark(e), nameServerRemark(e), e.Remark}, func(r string) bool { return r == "" })
	return strings.Join(remarks, "; ")
}

func nameServerRemark(e SyncCompleted) string {
	if e.Desired == nil {
		return ""
	}
	return e.Desired.NameServers.Remark
}

// alsoSelectedRemark explains why a zone does not hold all that it selects.
func alsoSelectedRemark(e SyncCompleted) string {
	n := len(e.AlsoSelected)
	if n == 0 {
		return ""
	}
	var some []string
	for _, key := range e.AlsoSelected[:min(n, 3)] {
		some = append(some, key.String())
	}
	return status.AlsoSelected(n, some, e.OlderZones)
}

// sidecarReason is empty for an error that is not a sidecar's.
func sidecarReason(err error) string {
	if failure, ok := errors.AsType[*bindcar.Error](err); ok {
		return failure.Reason
	}
	return ""
}

func isWorse(a, b v1beta1.ZoneInstanceStatus) bool {
	order := []v1beta1.ZoneInstanceStatus{v1beta1.ZoneConfigured, v1beta1.ZoneClaimed, v1beta1.ZoneFailed}
	return slices.Index(order, a) > slices.Index(order, b)
}

// summarizeInstances lists the state of each instance from its servers: it is configured when all its pods are.
func summarizeInstances(servers []ServerOutcome) []v1beta1.ZoneInstance {
	byName := map[types.NamespacedName]*v1beta1.ZoneInstance{}
	for _, s := range servers {
		if s.Provider != "" {
			continue
		}
		k := types.NamespacedName{Namespace: s.Namespace, Name: s.Instance}
		i := byName[k]
		if i == nil {
			i = &v1beta1.ZoneInstance{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9Instance",
				Namespace: s.Namespace, Name: s.Instance, Status: v1beta1.ZoneConfigured,
			}
			byName[k] = i
		}
		if state, message := status.HostState(s.Pod, s.HasZone, s.Err); isWorse(state, i.Status) {
			i.Status, i.Reason, i.Message = state, sidecarReason(s.Err), message
		}
	}
	all := make([]v1beta1.ZoneInstance, 0, len(byName))
	for _, i := range byName {
		all = append(all, *i)
	}
	slices.SortFunc(all, func(a, b v1beta1.ZoneInstance) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// summarizeProviders lists the state of each provider by name: one of servers is configured when all of them are, any other when it was
// read back.
func summarizeProviders(servers []ServerOutcome, backends []BackendOutcome) []v1beta1.ZoneProvider {
	var all []v1beta1.ZoneProvider
	for _, b := range backends {
		p := v1beta1.ZoneProvider{Name: b.Provider, Status: v1beta1.ZoneConfigured}
		if b.Err != nil {
			p.Status, p.Message = v1beta1.ZoneFailed, b.Err.Error()
		}
		all = append(all, p)
	}
	for _, s := range servers {
		if s.Provider == "" {
			continue
		}
		n := slices.IndexFunc(all, func(p v1beta1.ZoneProvider) bool { return p.Name == s.Provider })
		if n < 0 {
			n = len(all)
			all = append(all, v1beta1.ZoneProvider{Name: s.Provider, Status: v1beta1.ZoneConfigured})
		}
		if state, message := status.HostState(s.Pod, s.HasZone, s.Err); isWorse(state, all[n].Status) {
			all[n].Status, all[n].Message = state, message
		}
	}
	slices.SortFunc(all, func(a, b v1beta1.ZoneProvider) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
