package membership

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Two zones of one name, say one for the office and one for the world, on servers of their own: the record that admission
// has marked with that name is the one's that selects it.
func TestHolderOfNamesakes(t *testing.T) {
	var zones []*v1beta1.DNSZone
	for i, name := range []string{"world", "office"} {
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0))}}
		zone.Spec.ZoneName = "example.com"
		zone.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": name}}}}
		zones = append(zones, zone)
	}
	for label, want := range map[string]string{"world": "world", "office": "office", "none": "world"} {
		record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
			Name: "www", Labels: map[string]string{"zone": label}, Finalizers: []string{v1beta1.Finalizer},
			Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.com"},
		}}
		if got := (namespaceLabels{}).holderOf(zones, record); got == nil || got.Name != want {
			t.Errorf("labeled %s: held by %v, want %s", label, got, want)
		}
		m := NewCache()
		for _, zone := range zones {
			m.SetZone(zone)
		}
		m.SetObject(record)
		for name, role := range map[string]Role{"world": NoRole, "office": NoRole, want: Selected} {
			if label == "none" && role == Selected {
				role = Leaving
			}
			if got := m.Member(types.NamespacedName{Name: name}, source.KeyOf(record)).Role; got != role {
				t.Errorf("labeled %s: role %d in %s, want %d", label, got, name, role)
			}
		}
	}
}
