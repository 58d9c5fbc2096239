package engine

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// fleetOf is an instance or a cluster with all that its SyncStatus is computed from but the answers.
type fleetOf struct {
	servers []observe.Server
	// zones are those of each of its instances, by DNS name; primaries serve them, here or elsewhere.
	zones     map[object][]string
	primaries map[string][]netip.AddrPort
}

// isFleet tells whether a kind is about servers.
func isFleet(kind string) bool {
	return slices.ContainsFunc(syncstatus.FleetKinds, func(k syncstatus.Kind) bool { return k.Kind == kind })
}

// fleetInstances are those of an instance, itself, or of a cluster.
func (x *Index) fleetInstances(o metav1.Object) []*v1beta1.Bind9Instance {
	if i, ok := o.(*v1beta1.Bind9Instance); ok {
		return []*v1beta1.Bind9Instance{i}
	}
	return slices.DeleteFunc(x.liveInstances(o.GetNamespace()), func(i *v1beta1.Bind9Instance) bool { return !membership.BelongsTo(i, o) })
}

// fleetOfObject is a fleet with the zones that its servers should serve.
func (x *Index) fleetOfObject(o metav1.Object) fleetOf {
	instances := x.fleetInstances(o)
	f := fleetOf{servers: x.serversOf(instances, x.podsOf(instances)), zones: map[object][]string{}, primaries: map[string][]netip.AddrPort{}}
	own := map[object]bool{}
	for _, s := range f.servers {
		own[instanceOf(s)] = true
	}
	if len(own) == 0 {
		return f
	}
	all := x.liveInstances("")
	for _, zone := range inNamespace[*v1beta1.DNSZone](x.informers.zones, "") {
		if zone.DeletionTimestamp != nil || !membership.Servable(zone) {
			continue
		}
		name := source.DNSName(zone)
		serving := membership.InstancesOf(zone, all)
		concerned := false
		for _, i := range serving {
			if k := (object{Kind: syncstatus.InstanceKind.Kind, Namespace: i.Namespace, Name: i.Name}); own[k] {
				f.zones[k], concerned = append(f.zones[k], name), true
			}
		}
		if !concerned {
			continue
		}
		for _, s := range x.serversOf(serving, x.podsOf(serving)) {
			if s.Role == observe.Primary && s.Addr.IsValid() {
				f.primaries[name] = append(f.primaries[name], s.Addr)
			}
		}
	}
	return f
}

func instanceOf(s observe.Server) object {
	return object{Kind: syncstatus.InstanceKind.Kind, Namespace: s.Namespace, Name: s.Instance}
}

// askFleets asks all servers of some instances and clusters, and the primaries of their zones, each once, unless they were
// asked at since or later. About what is followed somebody else asks: only what was never answered is asked for. It returns
// the number of questions that they are worth.
func (e *Engine) askFleets(ctx context.Context, since time.Time, followed map[zoneAt]bool, fleets ...metav1.Object) (questions int) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Deadline)
	defer cancel()
	pods, wanted := map[netip.AddrPort]observe.Server{}, map[zoneAt]bool{}
	for _, o := range fleets {
		f := e.index.fleetOfObject(o)
		for _, s := range f.servers {
			if !s.Addr.IsValid() {
				continue
			}
			pods[s.Addr] = s
			for _, zone := range f.zones[instanceOf(s)] {
				wanted[zoneAt{s.Addr, zone}] = true
				for _, primary := range f.primaries[zone] {
					wanted[zoneAt{primary, zone}] = true
				}
			}
		}
	}
	var wg sync.WaitGroup
	for addr, s := range pods {
		e.meter.meet(s)
		asked := func() bool { return !e.fleet.pod(addr).at.Before(since) }
		if !asked() {
			wg.Go(func() { e.fleet.askingPods.until(ctx, addr, asked, func(ctx context.Context) { e.askPod(ctx, s) }) })
		}
	}
	for at := range wanted {
		asked := func() bool {
			last := e.fleet.zone(at).At
			return !last.IsZero() && (followed[at] || !last.Before(since))
		}
		if !asked() {
			wg.Go(func() { e.fleet.askingZones.until(ctx, at, asked, func(ctx context.Context) { e.askSerial(ctx, at) }) })
		}
	}
	wg.Wait()
	return len(pods) + len(wanted)
}

func (e *Engine) askSerial(ctx context.Context, at zoneAt) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Deadline)
	defer cancel()
	e.fleet.keepZone(at, e.observer.Serial(ctx, at.server, at.zone+"."))
}

// addQuestions adds what is asked when the zone is judged.
func (v *view) addQuestions(to map[zoneAt]bool) {
	zone := strings.TrimSuffix(v.declared.ZoneName(), ".")
	for _, s := range v.servers {
		to[zoneAt{s.Addr, zone}] = true
	}
}

// askPod asks one server for its version, unless it is known, and its sidecar whether it and named answer.
func (e *Engine) askPod(ctx context.Context, s observe.Server) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Deadline)
	defer cancel()
	a := podAnswer{at: time.Now(), restarts: s.Restarts}
	var wg sync.WaitGroup
	if last := e.fleet.pod(s.Addr); last.version != "" && last.restarts == s.Restarts && time.Since(last.versionAt) < versionKept {
		a.version, a.versionAt = last.version, last.versionAt
	} else {
		a.versionAt = a.at
		wg.Go(func() { a.version, _ = wire.Version(ctx, s.Addr, wire.WithTimeout(e.options.Deadline)) })
	}
	if e.sidecars != nil {
		wg.Go(func() { a.sidecar = e.askSidecar(ctx, s) })
	}
	wg.Wait()
	e.fleet.keepPod(s.Addr, a)
}

func (e *Engine) askSidecar(ctx context.Context, s observe.Server) string {
	err := e.sidecars.Ready(ctx, bindcar.Server{
		Addr: netip.AddrPortFrom(s.Addr.Addr(), named.SidecarPort), Namespace: s.Namespace, Instance: s.Instance,
	})
	var answer *bindcar.Error
	switch {
	case err == nil:
		return status.ReasonReady
	case errors.As(err, &answer):
		return answer.Reason
	}
	return status.BindcarUnreachable
}

// seen gives the last answers of a fleet's servers.
func (e *Engine) seen(f fleetOf) func(observe.Server) syncstatus.Seen {
	return func(s observe.Server) syncstatus.Seen {
		pod := e.fleet.pod(s.Addr)
		out := syncstatus.Seen{At: pod.at, Version: pod.version, Sidecar: pod.sidecar}
		for _, zone := range f.zones[instanceOf(s)] {
			answer := e.fleet.zone(zoneAt{s.Addr, zone})
			if answer.At.IsZero() {
				continue
			}
			if answer.At.Before(out.At) {
				out.At = answer.At
			}
			out.Zones = append(out.Zones, syncstatus.SeenZone{Zone: zone, Observation: answer, Newest: e.newest(f.primaries[zone], zone)})
		}
		return out
	}
}

// newest is the newest serial that any primary of a zone has answered with.
func (e *Engine) newest(primaries []netip.AddrPort, zone string) *uint32 {
	var newest *uint32
	for _, p := range primaries {
		if o := e.fleet.zone(zoneAt{p, zone}); o.Authoritative && (newest == nil || rrset.SerialLess(*newest, o.Serial)) {
			newest = &o.Serial
		}
	}
	return newest
}

// fleetStatus computes the SyncStatus of an instance or a cluster from the last answers.
func (e *Engine) fleetStatus(o metav1.Object) *syncv1.SyncStatus {
	f := e.index.fleetOfObject(o)
	seen, now := e.seen(f), time.Now()
	switch o := o.(type) {
	case *v1beta1.Bind9Instance:
		return syncstatus.Instance(o, f.servers, seen, now)
	case *v1beta1.Bind9Cluster:
		return syncstatus.Cluster(syncstatus.ClusterKind, o, &o.Status, f.servers, seen, now)
	case *v1beta1.Bind9GlobalCluster:
		return syncstatus.Cluster(syncstatus.GlobalClusterKind, o, &o.Status, f.servers, seen, now)
	case *v1beta1.ClusterBind9Provider:
		return syncstatus.Cluster(syncstatus.ProviderKind, o, &o.Status, f.servers, seen, now)
	}
	return nil
}
