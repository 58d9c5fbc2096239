package podcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// TestMayRemoveZone: a zone leaves its old servers when the new ones have it; it stays for ever where nobody else serves it.
func TestMayRemoveZone(t *testing.T) {
	for name, c := range map[string]struct {
		serving, of int
		waited      time.Duration
		want        bool
	}{
		"nobody is to have it":          {0, 0, 0, true},
		"none has it yet":               {0, 2, time.Second, false},
		"one has it":                    {1, 2, time.Second, false},
		"all have it":                   {2, 2, 0, true},
		"the second never gets it":      {1, 2, stuckAfter, true},
		"none ever gets it, for a year": {0, 2, 365 * 24 * time.Hour, false},
	} {
		if got := mayRemoveZone(c.serving, c.of, c.waited); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestCountServing: a zone has arrived on the instances that it is Configured on, of those that are to serve it.
func TestCountServing(t *testing.T) {
	instance := func(name string) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "new"}}
	}
	zone := func(name string, edit func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.DNSZoneSpec{ZoneName: name, ClusterRef: "new"}}
		for of, state := range map[string]v1beta1.ZoneInstanceStatus{"a": v1beta1.ZoneConfigured, "b": v1beta1.ZoneClaimed, "old": v1beta1.ZoneConfigured} {
			z.Status.Bind9Instances = append(z.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: "dns", Name: of, Status: state})
		}
		edit(z)
		return z
	}
	all := assignmentsOf([]*v1beta1.DNSZone{
		zone("moves.test", func(*v1beta1.DNSZone) {}),
		zone("goes.test", func(z *v1beta1.DNSZone) { z.DeletionTimestamp = new(metav1.Unix(1, 0)) }),
		zone("twice.test", func(z *v1beta1.DNSZone) {
			z.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, Reason: status.DuplicateZone}}
		}),
	}, membership.NewFleet(membership.FleetObjects{Instances: []*v1beta1.Bind9Instance{instance("a"), instance("b")}}, ""))
	for name, want := range map[string][2]int{"moves.test": {1, 2}, "goes.test": {0, 0}, "twice.test": {0, 0}, "unknown.test": {0, 0}} {
		if serving, of := all.countServing(bindcar.Zone{Name: name}); [2]int{serving, of} != want {
			t.Errorf("%s: %d of %d, want %d of %d", name, serving, of, want[0], want[1])
		}
	}
}

// TestCountServingAmongNamesakes: a zone waits for the servers of its own DNSZone. One of somebody else, on other servers, neither has it
// removed before it is there, nor keeps it after its end.
func TestCountServingAmongNamesakes(t *testing.T) {
	zone := func(namespace, name string, state v1beta1.ZoneInstanceStatus) *v1beta1.DNSZone {
		return &v1beta1.DNSZone{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1beta1.DNSZoneSpec{ZoneName: "moves.test", ClusterRef: "new"},
			Status: v1beta1.DNSZoneStatus{Bind9Instances: []v1beta1.ZoneInstance{{Namespace: namespace, Name: "a", Status: state}}},
		}
	}
	instance := func(namespace string) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "new"}}
	}
	all := assignmentsOf([]*v1beta1.DNSZone{zone("dns", "moves", v1beta1.ZoneClaimed), zone("other", "namesake", v1beta1.ZoneConfigured), zone("third", "broken", v1beta1.ZoneFailed)},
		membership.NewFleet(membership.FleetObjects{Instances: []*v1beta1.Bind9Instance{instance("dns"), instance("other"), instance("third")}}, ""))
	for owner, want := range map[string][2]int{"dns/moves": {0, 1}, "other/namesake": {1, 1}, "dns/gone": {0, 0}, "": {1, 3}} {
		if serving, of := all.countServing(bindcar.Zone{Name: "moves.test", Owner: owner}); [2]int{serving, of} != want {
			t.Errorf("of %s: %d of %d, want %d of %d", owner, serving, of, want[0], want[1])
		}
	}
}

// deletions records the zones that are deleted, and whose they are to be.
type deletions struct {
	Sidecar
	zones  []string
	owners []bindcar.Owner
}

func (d *deletions) DeleteZone(_ context.Context, _ bindcar.Address, zone string, owner bindcar.Owner) error {
	d.zones, d.owners = append(d.zones, zone), append(d.owners, owner)
	return nil
}

// TestRemovalSparesWhatHasComeBack: a zone that was another instance's when the pod was asked, and is the pod's again, stays, although the
// status still says that the other one has it.
func TestRemovalSparesWhatHasComeBack(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, name := range []string{"left", "right"} {
		objects = append(objects, &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, Labels: map[string]string{"side": name}}})
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.DNSZoneSpec{ZoneName: name + ".test"}}
		zone.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"side": name}}}}
		for _, of := range []string{"left", "right"} {
			zone.Status.Bind9Instances = append(zone.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: "dns", Name: of, Status: v1beta1.ZoneConfigured})
		}
		objects = append(objects, zone)
	}
	deleted := &deletions{}
	checker := New(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), nil, "", deleted, nil, nil)
	waiting, sidecarErr, err := checker.removeZones(t.Context(), client.ObjectKey{Namespace: "dns", Name: "left"}, bindcar.Address{}, []bindcar.Zone{{Name: "left.test"}, {Name: "right.test"}})
	if waiting || sidecarErr != nil || err != nil || !slices.Equal(deleted.zones, []string{"right.test"}) {
		t.Errorf("deleted %v; waiting %t, %v, %v", deleted.zones, waiting, sidecarErr, err)
	}
}

// TestRemovalSparesWhatTheCacheDoesNotKnow: the controller's cache may be ahead. Whatever the one here says, a zone stays while its DNSZone, as
// kube-apiserver has it, assigns it to the instance, or cannot be read.
func TestRemovalSparesWhatTheCacheDoesNotKnow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	left := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "left", Labels: map[string]string{"side": "left"}}}
	right := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "right", Labels: map[string]string{"side": "right"}}}
	zone := func(name, side string, edit func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.DNSZoneSpec{ZoneName: name + ".test"}}
		z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"side": side}}}}
		z.Status.Bind9Instances = []v1beta1.ZoneInstance{{Namespace: "dns", Name: "right", Status: v1beta1.ZoneConfigured}}
		edit(z)
		return z
	}
	asIs := func(*v1beta1.DNSZone) {}
	going := func(z *v1beta1.DNSZone) {
		z.Finalizers, z.DeletionTimestamp = []string{v1beta1.Finalizer}, new(metav1.Unix(1, 0))
	}
	refused := func(z *v1beta1.DNSZone) {
		z.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, Reason: status.NotPermitted}}
	}
	stored := []client.Object{zone("new", "left", asIs), zone("moved-here", "left", asIs), zone("moved-away", "right", asIs), zone("going", "left", going), zone("refused", "left", refused)}
	unreadable := errors.New("no answer")
	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == "unreadable" {
				return unreadable
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(left, right, zone("moved-here", "right", asIs), zone("moved-away", "right", asIs)).Build()
	deleted := &deletions{}
	checker := New(cached, live, "", deleted, nil, nil)
	var surplus []bindcar.Zone
	for _, name := range []string{"new", "moved-here", "moved-away", "going", "refused", "gone", "", "unreadable", "gone-later"} {
		zone := bindcar.Zone{Name: "nobodys.test"}
		if name != "" {
			zone = bindcar.Zone{Name: name + ".test", Owner: "dns/" + name, OwnerUID: "uid of " + name}
		}
		surplus = append(surplus, zone)
	}
	waiting, sidecarErr, err := checker.removeZones(t.Context(), client.ObjectKeyFromObject(left), bindcar.Address{}, surplus)
	if want := []string{"moved-away.test", "going.test", "refused.test", "gone.test", "nobodys.test"}; !waiting || sidecarErr != nil || err != nil || !slices.Equal(deleted.zones, want) {
		t.Errorf("deleted %v; waiting %t, %v, %v", deleted.zones, waiting, sidecarErr, err)
	}
	// The pod may have the zone of another DNSZone by then.
	if got := deleted.owners[0]; got != (bindcar.Owner{Name: "dns/moved-away", UID: "uid of moved-away"}) || deleted.owners[4] != (bindcar.Owner{}) {
		t.Errorf("deletes what is owned by %q", deleted.owners)
	}
}

// TestRemovalsAreBounded: a sidecar that lists any number of zones that nobody has assigned to it does not hold up a check for ever, and
// fills no log.
func TestRemovalsAreBounded(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	deleted := &deletions{}
	checker := New(fake.NewClientBuilder().WithScheme(scheme).Build(), nil, "", deleted, nil, nil)
	var surplus []bindcar.Zone
	var names []string
	for n := range 3*maxRemovals + 1 {
		names = append(names, fmt.Sprintf("%d.made-up.test", n))
		surplus = append(surplus, bindcar.Zone{Name: names[n]})
	}
	for look := 1; ; look++ {
		waiting, sidecarErr, err := checker.removeZones(ctx, client.ObjectKey{Namespace: "dns", Name: "left"}, bindcar.Address{}, surplus[len(deleted.zones):])
		if err := errors.Join(sidecarErr, err); err != nil || len(deleted.zones) > look*maxRemovals || len(lines) != look {
			t.Fatalf("look %d: %d zones deleted, %d lines, %v", look, len(deleted.zones), len(lines), err)
		}
		if !waiting {
			break
		}
	}
	if !slices.Equal(deleted.zones, names) || len(lines[0]) > 1000 || !strings.Contains(lines[0], "0.made-up.test") {
		t.Errorf("%d of %d zones deleted; %s", len(deleted.zones), len(surplus), lines[0])
	}
}
