package registry

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

var everyZone = fields.OneTermEqualSelector(syncv1.FieldKind, "DNSZone")

// A list of everything asks each server once for each zone, however many records, instances and clusters follow from the
// answer, and nothing is transferred that has not changed.
func TestListAsksOnceForEachServerAndZone(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.Deadline = time.Minute })
	names := []string{"a.test", "b.test", "c.test"}
	var zones []bind.Zone
	for _, name := range names {
		zones = append(zones, bind.Zone{Name: name + ".", Serial: 10, Records: "www A 192.0.2.7\nmail A 192.0.2.7"})
	}
	w.Lagging(zones...)
	w.Apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	for _, name := range names {
		z := fakekube.Zone(name, "primary", "secondary")
		w.Apply(z)
		for _, host := range []string{"www", "mail"} {
			r := w.Record(z, host, "192.0.2.7")
			r.Name, r.UID = host+"."+name, types.UID(host+"."+name)
			w.SetProgrammed(z, r)
			w.Apply(r)
		}
	}
	everything := query{namespace: ns}
	w.Eventually("all is in sync", func() bool {
		l := w.list(everything)
		for i := range l.Items {
			if !l.Items[i].Status.InSync {
				return false
			}
		}
		return len(l.Items) == len(names)*3+3
	})
	count := func() (questions, transfers float64) {
		for name, n := range w.metrics() {
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
