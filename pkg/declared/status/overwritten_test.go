package status

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// TestOverwrittenStatus: whatever somebody else has written into a status, the next one is what it would be without that. Only a condition
// whose name is nobody's here stays.
func TestOverwrittenStatus(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := metav1.NewTime(now.Add(-time.Hour))
	claim := func(kind, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "said somebody else", ObservedGeneration: 9, LastTransitionTime: at}
	}
	mine := claim("example.com/Audited", "Yes")
	claims := func(kinds ...string) []metav1.Condition {
		all := []metav1.Condition{mine}
		for _, kind := range append(kinds, Ready) {
			all = append(all, claim(kind, "Invented"))
		}
		return all
	}
	lifecycle := v1beta1.LifecycleStatus{Phase: v1beta1.PhaseFailed, FailureReason: "Invented", FailureMessage: "said somebody else"}
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main"}}
	zone.Spec.ZoneName = "example.com"
	holds := True(ReconcileSucceeded, "")
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: "dns-0"}}
	instance.Status.Conditions = []metav1.Condition{{Type: Ready, Status: metav1.ConditionTrue}, {Type: PodCondition(0), Status: metav1.ConditionTrue}}
	instance.Status.Replicas, instance.Status.ReadyReplicas = 1, 1
	clusterFacts := ClusterFacts{Generation: 1, Configured: holds, Instances: []ClusterInstance{{Name: "dns-0", Instance: instance}}}
	serial := int64(99)

	for name, c := range map[string]struct{ truth, again any }{
		"record": {
			Record(v1beta1.RecordStatus{}, RecordFacts{Zone: zone, Generation: 1, Owner: "www.example.com", Hash: "h", Accepted: holds, Programmed: holds}, now),
			Record(v1beta1.RecordStatus{Conditions: claims(Programmed, "Available", Degraded, Failed), ObservedGeneration: 9, PublishedName: "other", RecordHash: "x", Addresses: "192.0.2.9", Zone: "example.net",
				ZoneRef: &v1beta1.ZoneReference{Name: "other"}}, RecordFacts{Zone: zone, Generation: 1, Owner: "www.example.com", Hash: "h", Accepted: holds, Programmed: holds}, now),
		},
		"record of no zone": {
			Unselected(v1beta1.RecordStatus{}, 1, NoZoneSelects(&metav1.ObjectMeta{Namespace: "team"}), now),
			Unselected(v1beta1.RecordStatus{Conditions: claims(Programmed, Accepted, Progressing), ObservedGeneration: 9, PublishedName: "other", RecordHash: "x", Zone: "example.net"}, 1, NoZoneSelects(&metav1.ObjectMeta{Namespace: "team"}), now),
		},
		"zone": {
			Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Generation: 1, Programmed: holds, Serial: 7, SerialKnown: true}, now),
			Zone(v1beta1.DNSZoneStatus{Conditions: claims(Progressing, Degraded, "Available"), ObservedGeneration: 9, Serial: &serial, RecordsCount: 9, FailureReason: "Invented", ForeignRRsetsCount: 9,
				Bind9Instances: []v1beta1.ZoneInstance{{Name: "other"}}, Records: []v1beta1.RecordReference{{Name: "other"}}}, ZoneFacts{Generation: 1, Programmed: holds, Serial: 7, SerialKnown: true}, now),
		},
		"endpoint": {
			Endpoint(v1alpha1.DNSEndpointStatus{}, EndpointFacts{Generation: 1, Left: func(v1alpha1.EndpointZone) bool { return true }}, now),
			Endpoint(v1alpha1.DNSEndpointStatus{Conditions: claims(Programmed), ObservedGeneration: 9, Zones: []v1alpha1.EndpointZone{{Name: "other"}}},
				EndpointFacts{Generation: 1, Left: func(v1alpha1.EndpointZone) bool { return true }}, now),
		},
		"instance": {
			Instance(v1beta1.Bind9InstanceStatus{}, InstanceFacts{Generation: 1, Configured: holds, Pods: []PodFacts{holding("dns-0", pod(true))}}, now),
			Instance(v1beta1.Bind9InstanceStatus{Conditions: claims("Pod-0", "Pod-7", "Available"), LifecycleStatus: lifecycle, Replicas: 9, ReadyReplicas: 9, ZonesCount: 9, ServiceAddress: "192.0.2.9", PendingCause: "invented"},
				InstanceFacts{Generation: 1, Configured: holds, Pods: []PodFacts{holding("dns-0", pod(true))}}, now),
		},
		"cluster": {
			Cluster(v1beta1.Bind9ClusterStatus{}, clusterFacts, now),
			Cluster(v1beta1.Bind9ClusterStatus{Conditions: claims("Bind9Instance-0", "Bind9Instance-7", Progressing), LifecycleStatus: lifecycle, InstanceCount: 9, Instances: []string{"other"}}, clusterFacts, now),
		},
		"global cluster": {
			GlobalCluster(v1beta1.Bind9ClusterStatus{}, clusterFacts, now),
			GlobalCluster(v1beta1.Bind9ClusterStatus{Conditions: claims("Bind9Instance-0", "Bind9Instance-7", Progressing), LifecycleStatus: lifecycle, InstanceCount: 9, Instances: []string{"other"}}, clusterFacts, now),
		},
		"provider": {
			Provider(v1beta1.DNSProviderStatus{}, ProviderFacts{Generation: 1, Type: "rfc2136"}, now),
			Provider(v1beta1.DNSProviderStatus{Conditions: claims(Reachable, "Available"), Type: "other", ZonesCount: 9, Servers: []v1beta1.ProviderServerStatus{{Address: "192.0.2.9"}}}, ProviderFacts{Generation: 1, Type: "rfc2136"}, now),
		},
	} {
		t.Run(name, func(t *testing.T) {
			others := cmpopts.IgnoreSliceElements(func(c metav1.Condition) bool { return c.Type == mine.Type })
			ordered := cmpopts.SortSlices(func(a, b metav1.Condition) bool { return a.Type < b.Type })
			times := cmpopts.IgnoreTypes(metav1.Time{}, &metav1.Time{})
			if diff := cmp.Diff(c.truth, c.again, others, ordered, times, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-without +with what was overwritten):\n%s", diff)
			}
			if kept := reflect.ValueOf(c.again).FieldByName("Conditions").Interface().([]metav1.Condition); !slices.Contains(kept, mine) {
				t.Errorf("the condition of somebody else is gone: %v", kept)
			}
		})
	}
}
