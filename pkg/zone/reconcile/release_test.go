package reconcile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func deleted(a *v1beta1.ARecord) *v1beta1.ARecord {
	a = a.DeepCopy()
	now := metav1.Now()
	a.DeletionTimestamp = &now
	a.Generation++
	return a
}

func TestPassLetsGoOfAnObjectOnce(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(r.a("mail", 1, "192.0.2.11"))
	r.pass()
	gone := deleted(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(gone)
	if released := r.settle(); len(released) != 1 || source.KeyOf(released[0]) != source.KeyOf(gone) {
		t.Fatalf("released: %v", released)
	}
	r.zones.Set(r.a("mail", 2, "192.0.2.12"))
	if released := r.settle(); len(released) != 0 {
		t.Errorf("released once more: %v", released)
	}
	touched := gone.DeepCopy()
	touched.Annotations["somebody"] = "else"
	r.zones.Set(touched)
	if p := r.pass(); len(p.event.Released) != 1 {
		t.Errorf("released after it changed: %v", p.event.Released)
	}
	r.pass()
	r.states.stateOf(r.zone).content.Discard()
	if p := r.pass(); len(p.event.Released) != 1 {
		t.Errorf("released after everything was looked at anew: %v", p.event.Released)
	}
}

// kube-apiserver reports the end of an object as it was stored last, with our finalizer.
func TestTheEndOfAReleasedObjectStartsNoPass(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	released, lost := r.a("www", 1, "192.0.2.10"), r.a("mail", 1, "192.0.2.11")
	r.zones.Set(released)
	r.zones.Set(lost)
	r.settle()
	r.zones.Set(deleted(released))
	r.settle()
	if requests := r.zones.Remove(deleted(released)); len(requests) != 0 {
		t.Errorf("the end of what was released asks for %v", requests)
	}
	if requests := r.zones.Remove(lost); len(requests) != 1 {
		t.Errorf("the end of what has data asks for %v", requests)
	}
	r.settle()
	r.holds("mail")
}

// BenchmarkDeletion deletes the 10,000 records of a zone, 50 in each pass; an object is gone 2,000 deletions later.
func BenchmarkDeletion(b *testing.B) {
	const records, each, lag = 10_000, 50, 2_000
	r := newRig(b, 1, bind.Zone{})
	for b.Loop() {
		b.StopTimer()
		for n := range records {
			r.zones.Set(numbered(n, 1))
		}
		if p := r.pass(); len(p.event.Unprogrammed) > 0 {
			b.Fatal(p.event.Unprogrammed)
		}
		b.StartTimer()
		released := 0
		for n := 0; n < records+lag; n += each {
			for i := n; i < n+each; i++ {
				if i < records {
					r.zones.Set(deleted(numbered(i, 1)))
				}
				if i >= lag {
					last := deleted(numbered(i-lag, 1))
					last.Finalizers = nil
					r.zones.Remove(last)
				}
			}
			released += len(r.pass().event.Released)
		}
		b.ReportMetric(float64(released), "released/op")
	}
}
