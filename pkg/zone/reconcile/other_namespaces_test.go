package reconcile

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// offered is a record of namespace team that zones of namespace dns may take, as the controller has left it.
func (r *rig) offered(name, address string) *v1beta1.ARecord {
	a := r.a(name, 1, address)
	a.Namespace, a.Annotations[v1beta1.AllowZoneNamespacesAnnotation] = "team", "dns"
	a.Status.PublishedName, a.Status.Zone = name+".example.test", "example.test"
	a.Status.ZoneRef = &v1beta1.ZoneReference{Namespace: "dns", Name: r.zone.Name}
	return a
}

// Records of another namespace are published while both sides want that. When either does not any more, their data goes, and nothing else.
func TestRecordsOfOtherNamespaces(t *testing.T) {
	namespace := func(team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"team": team}}}
	}
	for name, end := range map[string]func(r *rig, www *v1beta1.ARecord){
		"the namespace is labeled otherwise": func(r *rig, _ *v1beta1.ARecord) { r.zones.Set(namespace("no")) },
		"the namespace is gone":              func(r *rig, _ *v1beta1.ARecord) { r.zones.Remove(namespace("yes")) },
		"the zone closes": func(r *rig, _ *v1beta1.ARecord) {
			r.zone = r.zone.DeepCopy()
			r.zone.Spec.RecordsFrom[0].NamespaceSelector, r.zone.Generation = nil, 2
			r.zones.Set(r.zone)
		},
		"the record withdraws": func(r *rig, www *v1beta1.ARecord) {
			www = www.DeepCopy()
			delete(www.Annotations, v1beta1.AllowZoneNamespacesAnnotation)
			r.zones.Set(www)
		},
		"the record is deleted": func(r *rig, www *v1beta1.ARecord) {
			www = www.DeepCopy()
			www.DeletionTimestamp = new(metav1.Now())
			r.zones.Set(www)
		},
		"a zone of its own namespace takes it": func(r *rig, _ *v1beta1.ARecord) {
			own := r.zone.DeepCopy()
			own.Namespace, own.Name, own.UID, own.Spec.ZoneName = "team", "own", "own", "own.test"
			r.zones.Set(own)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{Records: "legacy 300 A 192.0.2.77\n"})
			r.zone = r.zone.DeepCopy()
			r.zone.Spec.RecordsFrom[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}
			r.zones.Set(r.zone)
			www := r.offered("www", "192.0.2.10")
			r.zones.Set(www)
			r.zones.Set(r.a("www", 1, "192.0.2.20")) // Values of one name unite.
			r.zones.Set(namespace("yes"))
			r.mustSync()
			r.holds("www", "192.0.2.10", "192.0.2.20")
			end(r, www)
			p := r.mustSync()
			r.holds("www", "192.0.2.20")
			if !slices.ContainsFunc(p.event.Released, func(o source.Object) bool { return source.KeyOf(o) == source.KeyOf(www) }) {
				t.Errorf("released: %v", p.event.Released)
			}
		})
	}
}

// Nobody gets a name of a zone, or rid of one, by what he writes into an object of a namespace that the zone does not select.
func TestAttacksFromOtherNamespaces(t *testing.T) {
	r := newRig(t, 1, bind.Zone{Records: "legacy 300 A 192.0.2.77\n"})
	r.zone = r.zone.DeepCopy()
	r.zone.Spec.RecordsFrom[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}
	r.zones.Set(r.zone)
	r.zones.Set(r.a("www", 1, "192.0.2.20"))
	r.mustSync()
	r.zones.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"team": "no"}}})
	for name, forge := range map[string]func(*v1beta1.ARecord){
		"consent alone": func(*v1beta1.ARecord) {},
		"any zone":      func(a *v1beta1.ARecord) { a.Annotations[v1beta1.AllowZoneNamespacesAnnotation] = "*" },
		"former names": func(a *v1beta1.ARecord) {
			a.Annotations[v1beta1.FormerNamesAnnotation] = "www/A,legacy/A"
		},
		"deleted": func(a *v1beta1.ARecord) { a.DeletionTimestamp = new(metav1.Now()) },
	} {
		for _, at := range []string{"www", "legacy", "new"} {
			a := r.offered(at, "198.51.100.1")
			a.Status = v1beta1.RecordStatus{} // Nobody but the controller writes it.
			forge(a)
			r.zones.Set(a)
			r.mustSync()
			if role := r.zones.Members.Member(membership.KeyOfZone(r.zone), source.KeyOf(a)).Role; role != membership.NoRole {
				t.Errorf("%s at %s: role %d", name, at, role)
			}
			r.zones.Remove(a)
			r.mustSync()
		}
	}
	r.holds("www", "192.0.2.20")
	r.holds("legacy", "192.0.2.77")
	r.holds("new")
}
