package engine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

var everyZone = fields.OneTermEqualSelector(syncv1.FieldKind, "DNSZone")

// A list of everything asks each server once for each zone, however many records, instances and clusters follow from the
// answer, and nothing is transferred that has not changed.
func TestListAsksOnceForEachServerAndZone(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Deadline = time.Minute })
	registry := metrics.NewKubeRegistry()
	if err := w.engine.RegisterMetrics(registry.Register, registry.CustomRegister); err != nil {
		t.Fatal(err)
	}
	names := []string{"a.test", "b.test", "c.test"}
	var zones []bind.Zone
	for _, name := range names {
		zones = append(zones, bind.Zone{Name: name + ".", Serial: 10, Records: "www A 192.0.2.7\nmail A 192.0.2.7"})
	}
	lagging(t, w, zones...)
	w.apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	for _, name := range names {
		z := zone(name, "primary", "secondary")
		w.apply(z)
		for _, host := range []string{"www", "mail"} {
			r := w.record(z, host, "192.0.2.7")
			r.Name, r.UID = host+"."+name, types.UID(host+"."+name)
			w.programmed(z, r)
			w.apply(r)
		}
	}
	everything := Query{Namespace: ns}
	w.eventually("all is in step", func() bool {
		l := w.list(everything)
		for i := range l.Items {
			if !l.Items[i].Status.InSync {
				return false
			}
		}
		return len(l.Items) == len(names)*3+3
	})
	count := func() (questions, transfers float64) {
		for name, n := range values(t, registry) {
			switch {
			case strings.HasPrefix(name, "probe"):
				questions += n
			case strings.HasPrefix(name, "transfers"):
				transfers += n
			}
		}
		return questions, transfers
	}
	questions, transfers := count()
	const lists = 5
	for range lists {
		w.list(everything)
	}
	asked, transferred := count()
	if got, want := asked-questions, float64(lists*len(names)*2); got != want {
		t.Errorf("%v questions for %d lists of %d zones on two servers, want %v", got, lists, len(names), want)
	}
	if transferred != transfers {
		t.Errorf("%v transfers of what has not changed", transferred-transfers)
	}
}
