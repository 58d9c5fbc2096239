package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	bind "github.com/lockstep-dns/lockstep/test/named"
)

// What waits for content to be transferred anew is judged when it has been, also when the answer that ends the waiting has
// been overtaken by another.
func TestOvertakenAnswerEndsTheWaiting(t *testing.T) {
	w := newWorld(t)
	lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.apply(w.record(z, "www", "192.0.2.7"))
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })

	// The tracker takes its steps here, one by one.
	tracker := makeTracker(w.ctx, w.engine, ns)
	q := Query{Namespace: ns, Fields: fields.OneTermEqualSelector("metadata.name", "arecord.www")}
	q.setDefaults()
	sub, _ := newSubscription(w.ctx, q)
	sub.synthetic, sub.initial[ns] = true, true
	tracker.attach(sub)
	tracker.look()
	answers := []answer{<-tracker.answers, <-tracker.answers}
	for _, a := range answers {
		tracker.take(a)
	}
	tracker.judge()
	tracker.join()
	if e, _ := sub.take(); len(e) != 1 || e[0].Type != watch.Added || !e[0].Object.(*shared).Status.InSync {
		t.Fatalf("the watch begins with %+v", e)
	}

	key := object{Kind: "ARecord", Namespace: ns, Name: "www"}
	zone := tracker.zones[answers[0].zone]
	zone.unverified[key] = struct{}{}
	for i := range zone.verifying {
		zone.verifying[i] = true
	}
	for _, a := range answers {
		a.At = a.At.Add(-1)
		tracker.take(a)
	}
	if _, waits := zone.unverified[key]; waits {
		t.Error("the record still waits")
	}
	if _, dirty := tracker.dirty[zone]; !dirty {
		t.Error("nobody is going to judge the record")
	}
}
