package evaluate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// fleetStatus evaluates an instance or a cluster by the last answers of its servers.
func (e *Evaluator) fleetStatus(o metav1.Object) *syncv1.SyncStatus {
	f := e.index.Fleet(o)
	seen, now := func(s observe.Server) syncstatus.PodAnswers { return e.lastSeen(f, s) }, time.Now()
	switch o := o.(type) {
	case *v1beta1.Bind9Instance:
		return syncstatus.InstanceStatus(o, f.Servers, seen, now)
	case *v1beta1.Bind9Cluster:
		return syncstatus.ClusterStatus(subject.ClusterKind, o, &o.Status, f.Servers, seen, now)
	case *v1beta1.Bind9GlobalCluster:
		return syncstatus.ClusterStatus(subject.GlobalClusterKind, o, &o.Status, f.Servers, seen, now)
	case *v1beta1.ClusterBind9Provider:
		return syncstatus.ClusterStatus(subject.ProviderKind, o, &o.Status, f.Servers, seen, now)
	}
	return nil
}

// lastSeen are the last answers of one server of a fleet. A zone for which it has not answered yet counts as silence.
func (e *Evaluator) lastSeen(f *desired.Fleet, s observe.Server) syncstatus.PodAnswers {
	pod := e.answers.Pod(s.Peer())
	out := syncstatus.PodAnswers{At: pod.At, Version: pod.Version, Sidecar: pod.Sidecar}
	for _, zone := range f.ZonesOf(s) {
		answer := e.answers.Serial(PlaceOf(s, zone+"."))
		if answer.At.IsZero() {
			answer = NoAnswer(s.Addr, zone+".", time.Now())
		}
		if answer.At.Before(out.At) {
			out.At = answer.At
		}
		out.Zones = append(out.Zones, syncstatus.ZoneAnswer{Zone: zone, Observation: answer, Newest: e.newestSerial(f.PrimariesOf(zone), zone)})
	}
	return out
}

// newestSerial is the newest serial that any primary of a zone has answered with; nil when none has.
func (e *Evaluator) newestSerial(primaries []observe.Server, zone string) *uint32 {
	var newest *uint32
	for _, p := range primaries {
		if o := e.answers.Serial(PlaceOf(p, zone+".")); o.Authoritative && !o.Unverified && (newest == nil || rrset.SerialLess(*newest, o.Serial)) {
			newest = &o.Serial
		}
	}
	return newest
}
