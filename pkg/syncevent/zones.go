package syncevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// zonePause is the least time between two writes of a zone's status that tell nothing urgent.
const zonePause = time.Second

// zoneNews is what a zone has to be told.
type zoneNews struct {
	// e is the latest outcome, without what nobody needs any more.
	e SyncCompleted
	// waiting are objects to look at again when the outcome is another one.
	waiting map[source.ObjectKey]struct{}
	// told and generation are what was written last, at written; all zero before the first time.
	told       status.ZoneVerdicts
	generation int64
	written    time.Time
}

// early is how long a status should wait. What flips a condition or answers another generation of the spec does not
// wait: that is what people wait for. That a change is on its way to the secondaries is no such thing: it will have arrived
// in a moment, and a status that lists a thousand records would be written twice for each of many changes.
func (z *zoneNews) early(v status.ZoneVerdicts, now time.Time) time.Duration {
	onItsWay := v.Progressing.Holds() && v.Ready.Status == z.told.Ready.Status
	if z.written.IsZero() || z.generation != z.e.Zone.Generation || v.Flipped(z.told) && !onItsWay {
		return 0
	}
	return z.written.Add(zonePause).Sub(now)
}

// zone writes the status of a zone, when it differs from what the zone already says.
func (w *Writer) zone(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	w.mu.Lock()
	z := w.zones[key]
	if z == nil {
		w.mu.Unlock()
		return 0, nil
	}
	e, before := z.e, *z
	w.mu.Unlock()
	facts := zoneFacts(e)
	verdicts := status.ZoneVerdictsOf(facts)
	if wait := before.early(verdicts, w.Now()); wait > 0 {
		return wait, nil
	}
	zone := &v1beta1.DNSZone{}
	if err := w.Client.Get(ctx, key, zone); client.IgnoreNotFound(err) != nil {
		return 0, err
	} else if err != nil || zone.UID != e.Zone.UID || !zone.DeletionTimestamp.IsZero() {
		return 0, nil // Nobody is to read the status of a zone on its way out: a thousand of them are gone sooner without.
	}
	facts.Instances, facts.Timeout = zoneInstances(e.Servers), w.ZoneTimeout
	facts.Records = w.listRecords(ctx, e, facts.Programmed, zone.Status.Records)
	next := status.Zone(zone.Status, facts, e.At)
	if !equality.Semantic.DeepEqual(next, zone.Status) {
		if err := w.applied(ctx, zoneKind, zone, &next); err != nil {
			return 0, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	z.told, z.generation, z.written = verdicts, e.Zone.Generation, w.Now()
	return 0, nil
}

// zoneFacts counts; it costs what is not programmed, not what the zone holds.
func zoneFacts(e SyncCompleted) status.ZoneFacts {
	f := status.ZoneFacts{
		Generation: e.Zone.Generation, Serial: e.Serial, Problem: e.Problem, Servers: len(e.Servers),
		Paused: e.Paused, Pending: e.Pending, Foreign: e.Foreign, Remark: remark(e), DNSSEC: e.DNSSEC, DNSSECKnown: e.DNSSECKnown,
	}
	for _, s := range e.Servers {
		if s.Current {
			f.Current++
		}
		if errors.Is(s.Err, ErrTransfer) && f.Untransferred == "" {
			f.Untransferred = s.Pod + ": " + s.Err.Error()
		}
	}
	for _, key := range e.ForeignSample {
		f.ForeignSample = append(f.ForeignSample, key.String())
	}
	if e.Desired != nil {
		f.Unready = unready(e)
		f.Programmed = e.Desired.Declarations.Len() - f.Unready
	}
	return f
}

// unready counts the declarations that are not programmed.
func unready(e SyncCompleted) int {
	if !e.Problem.Holds() {
		return e.Desired.Declarations.Len()
	}
	count := e.Desired.Refused
	for key := range e.Unprogrammed {
		set, _ := e.Desired.RRsets.Get(key)
		owners := slices.Concat(set.Owners...)
		slices.SortFunc(owners, func(a, b source.Ref) int { return cmp.Compare(a.String(), b.String()) })
		for _, owner := range slices.Compact(owners) {
			for _, d := range e.Desired.Of(source.ObjectKey{Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}) {
				if d.Accepted && d.Key == key {
					count++
				}
			}
		}
	}
	return count
}

func remark(e SyncCompleted) string {
	remarks := slices.DeleteFunc([]string{alsoSelected(e), e.Remark}, func(r string) bool { return r == "" })
	return strings.Join(remarks, "; ")
}

// alsoSelected tells whoever reads a zone why it does not hold all that it selects.
func alsoSelected(e SyncCompleted) string {
	n := len(e.AlsoSelected)
	if n == 0 {
		return ""
	}
	var some []string
	for _, key := range e.AlsoSelected[:min(n, 3)] {
		some = append(some, key.String())
	}
	if n > len(some) {
		some = append(some, "…")
	}
	objects, older := "1 record is", "an older zone, which has it"
	if n > 1 {
		objects, older = fmt.Sprintf("%d records are", n), "older zones, which have them"
	}
	if len(e.OlderZones) > 0 {
		older += ": DNSZone " + strings.Join(e.OlderZones[:min(len(e.OlderZones), 3)], ", ")
	}
	return fmt.Sprintf("%s also selected (%s) by %s", objects, strings.Join(some, ", "), older)
}

// zoneInstances sums up the servers by instance: an instance is configured when all its pods are.
func zoneInstances(servers []ServerOutcome) []v1beta1.ZoneInstance {
	type key struct{ namespace, name string }
	byName := map[key]*v1beta1.ZoneInstance{}
	for _, s := range servers {
		k := key{s.Namespace, s.Instance}
		i := byName[k]
		if i == nil {
			i = &v1beta1.ZoneInstance{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9Instance",
				Namespace: s.Namespace, Name: s.Instance, Status: v1beta1.ZoneConfigured,
			}
			byName[k] = i
		}
		switch {
		case s.Err != nil:
			i.Status, i.Message = v1beta1.ZoneFailed, s.Pod+": "+s.Err.Error()
		case s.Serial == 0 && i.Status == v1beta1.ZoneConfigured:
			i.Status, i.Message = v1beta1.ZoneClaimed, s.Pod+" does not serve the zone yet"
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
