package zone

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
)

func worldZone(name, zoneName string, labels map[string]string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, UID: types.UID(name), Generation: 1}}
	z.Spec.ZoneName = zoneName
	if labels != nil {
		z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: labels}}}
	}
	return z
}

func asked(names ...string) []ctrl.Request {
	var requests []ctrl.Request
	for _, name := range names {
		requests = append(requests, ctrl.Request{NamespacedName: zoneKey{Namespace: "dns", Name: name}})
	}
	return requests
}

func sorted(requests []ctrl.Request) []ctrl.Request {
	return slices.CompactFunc(slices.SortedFunc(slices.Values(requests), func(a, b ctrl.Request) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	}), func(a, b ctrl.Request) bool { return a == b })
}

func TestEventsAskForPassesWhereTheyMatter(t *testing.T) {
	w := newWorld()
	main, sub := worldZone("main", "example.com", map[string]string{"in": "yes"}), worldZone("sub", "sub.example.com", nil)
	record := numbered(1, 1)
	told := record.DeepCopy()
	told.Status.ZoneRef = &v1beta1.ZoneReference{Name: "main"}
	moved := told.DeepCopy()
	moved.Labels, moved.Generation = nil, 2
	endpoints := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "e"}, Spec: v1alpha1.DNSEndpointSpec{
		Endpoints: []*v1alpha1.Endpoint{{DNSName: "www.sub.example.com"}, {DNSName: "www.example.com"}, {DNSName: "www.example.net"}},
	}}
	statusOnly := main.DeepCopy()
	statusOnly.Status.RecordsCount = 1
	for _, step := range []struct {
		name string
		got  []ctrl.Request
		want []ctrl.Request
	}{
		{"an object without a zone is an orphan", w.set(record), asked("")},
		{"a zone, and what it takes", w.set(main), asked("main")},
		{"another zone", w.set(sub), asked("sub")},
		{"the status of a zone", w.set(statusOnly), nil},
		{"the status of a record", w.set(told), nil},
		{"a record that leaves", w.set(moved), asked("main")},
		{"an object of several zones", w.set(endpoints), asked("main", "sub")},
		{"a zone that is gone, and the one that follows it", w.remove(sub), asked("main", "sub")},
	} {
		if diff := cmp.Diff(step.want, sorted(step.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if got := w.takeOrphans("dns"); len(got) != 0 {
		t.Errorf("orphans that have found a zone: %v", got)
	}
	roles := map[string]membership.Role{}
	for _, m := range w.take(membership.KeyOfZone(main), false) {
		roles[m.Key.Name] = m.Role
	}
	if diff := cmp.Diff(map[string]membership.Role{record.Name: membership.Leaving, "e": membership.Selected}, roles); diff != "" {
		t.Errorf("dirty objects (-want +got):\n%s", diff)
	}
	if again := w.take(membership.KeyOfZone(main), false); len(again) > 0 {
		t.Errorf("handed out twice: %v", again)
	}
	at := w.place(endpoints)
	if diff := cmp.Diff([]types.NamespacedName{membership.KeyOfZone(main)}, at.Taken); diff != "" || !slices.Equal(at.Unplaced, []int{2}) {
		t.Errorf("unplaced %v, taken (-want +got):\n%s", at.Unplaced, diff)
	}
}
