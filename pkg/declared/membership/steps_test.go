package membership

import (
	"fmt"
	"iter"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// crowd is a cache of a namespace with a number of records, which several zones select.
func crowd(records, zones int) (*Cache, *v1beta1.DNSZone) {
	c := NewCache()
	zone := func(name string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: name}}
		z.Spec.ZoneName, z.Spec.RecordsFrom = name+".example.com", []v1beta1.RecordSource{{}}
		return z
	}
	for i := range zones {
		c.SetZone(zone(fmt.Sprintf("z%02d", i)))
	}
	for i := range records {
		name := fmt.Sprintf("r%06d", i)
		c.SetObject(&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: name, Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "dns"}}})
	}
	return c, zone("z00")
}

// However many objects a change concerns, and whatever of them it looks at in vain, others get the lock after a hundred.
func TestChangesGiveTheLockAway(t *testing.T) {
	const objects = 10 * objectsPerStep
	c, zone := crowd(objects, 2)
	none := zone.DeepCopy()
	none.Spec.RecordsFrom = nil
	parent := exampleZone()
	parent.Namespace, parent.Spec.ZoneName = "stranger", "com"
	c.SetZone(parent)
	for i := range objects {
		e := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "stranger", Name: fmt.Sprint("e", i)}}
		e.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: "www.example.com"}}
		c.SetObject(e)
	}
	below := exampleZone()
	below.Spec.RecordsFrom = nil
	admitting := below.DeepCopy()
	admitting.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "stranger"}
	labels := map[string]string{"in": "crowd"}
	selecting := exampleZone()
	selecting.Name = "selecting"
	selecting.Spec.RecordsFrom = []v1beta1.RecordSource{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: labels}}}
	for _, change := range []struct {
		name    string
		steps   Steps
		changed int // objects that others learn of
		given   int // how often, at least, the lock is given away
	}{
		{"a selector that takes nothing", c.ZoneSteps(none), objects, 10},
		{"one that takes all", c.ZoneSteps(zone), objects, 10},
		{"a zone that goes", c.ZoneRemovalSteps(KeyOfZone(zone)), objects, 10},
		{"a zone that comes", c.ZoneSteps(zone), objects, 10},
		{"a zone below a stranger's", c.ZoneSteps(below), 0, 1},
		{"a zone that admits a stranger who does not consent", c.ZoneSteps(admitting), 0, 10},
		{"a zone of another namespace", c.ZoneSteps(selecting), 0, 10},
		{"the labels of the namespace", c.NamespaceSteps("crowd", labels), 0, 10},
		{"a namespace that goes", c.NamespaceRemovalSteps("crowd"), 0, 10},
	} {
		t.Run(change.name, func(t *testing.T) {
			given, changed := 0, map[source.ObjectKey]bool{}
			for affected := range change.steps {
				if !c.mu.TryLock() {
					t.Fatal("the lock is held")
				}
				c.mu.Unlock()
				given++
				step := map[source.ObjectKey]bool{}
				for _, a := range affected {
					if a.By == nil {
						step[a.Object], changed[a.Object] = true, true
					}
				}
				if len(step) > objectsPerStep {
					t.Errorf("a step looks at %d objects", len(step))
				}
			}
			if len(changed) != change.changed || given < change.given || change.given == 1 && given > 1 {
				t.Errorf("%d objects have changed, want %d; the lock was given away %d times, want %d", len(changed), change.changed, given, change.given)
			}
		})
	}
}

// A DNSEndpoint may have thousands of names, and each costs as much as a record.
func TestStepsCountNames(t *testing.T) {
	c := NewCache()
	for i := range 4 {
		e := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprint("e", i)}}
		for j := range objectsPerStep {
			e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{DNSName: fmt.Sprintf("n%d.example.com", j)})
		}
		c.SetObject(e)
	}
	steps := 0
	for range c.ZoneSteps(exampleZone()) {
		steps++
	}
	if steps < 4 {
		t.Errorf("4 objects with %d names each are looked at in %d steps", objectsPerStep, steps)
	}
}

// Objects of a zone that is gone and not looked at yet are in no zone, and nobody is told of that one.
func TestNothingIsInAZoneThatIsGone(t *testing.T) {
	c, zone := crowd(2*objectsPerStep, 1)
	left := func() (n int) {
		for key, o := range c.objects {
			if len(o.roles) > 0 {
				if n++; len(c.Roles(key)) > 0 {
					t.Errorf("%s has roles: %v", key, c.Roles(key))
				}
				if affected := c.RemoveObject(o.Object); len(affected) > 0 {
					t.Errorf("its end affects %v", affected)
				}
			}
		}
		return n
	}
	seen := 0
	for affected := range c.ZoneRemovalSteps(KeyOfZone(zone)) {
		for _, a := range affected {
			if a.By == nil && a.Zone.Name != "" {
				t.Fatalf("told of %v", a)
			}
		}
		seen += left()
	}
	if seen == 0 {
		t.Error("all objects were looked at in one step")
	}
}

func TestZonesSettle(t *testing.T) {
	c, zone := crowd(2*objectsPerStep, 0)
	key := KeyOfZone(zone)
	var settled []bool
	for range c.ZoneSteps(zone) {
		settled = append(settled, c.IsSettled(key))
	}
	if settled = append(settled, c.IsSettled(key)); settled[0] || !settled[len(settled)-1] {
		t.Errorf("settled after each step: %v", settled)
	}
	// A second change comes amidst the first one, and ends before it.
	changed, again := zone.DeepCopy(), zone.DeepCopy()
	changed.Spec.RecordsFrom = nil
	first, stop := iter.Pull(c.ZoneSteps(changed))
	defer stop()
	first()
	c.SetZone(again)
	if c.IsSettled(key) {
		t.Error("settled amidst a change")
	}
	for goesOn := true; goesOn; {
		_, goesOn = first()
	}
	if !c.IsSettled(key) || len(c.Members(key)) != 2*objectsPerStep {
		t.Errorf("settled %v, with %d objects", c.IsSettled(key), len(c.Members(key)))
	}
}

// A change of one of 16 zones that select all records of a namespace. max-wait is the longest time without the lock for others.
func BenchmarkChangeOfSelector(b *testing.B) {
	for _, records := range []int{20_000, 200_000} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			c, zone := crowd(records, 16)
			none := zone.DeepCopy()
			none.Spec.RecordsFrom = nil
			var longest time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				for range c.ZoneSteps([]*v1beta1.DNSZone{none, zone}[i%2]) {
					longest = max(longest, time.Since(began))
					began = time.Now()
				}
			}
			b.ReportMetric(float64(longest.Microseconds()), "max-wait-us")
		})
	}
}
