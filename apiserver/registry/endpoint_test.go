package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// endpoints declares an address under each name, and says that it was programmed.
func endpoints(namespace, name string, z []*v1beta1.DNSZone, dnsNames ...string) *v1alpha1.DNSEndpoint {
	e := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	e.Status.ObservedGeneration = 1
	for i, dnsName := range dnsNames {
		e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{DNSName: dnsName, RecordType: "A", Targets: []string{"192.0.2.7"}})
		e.Status.Zones = append(e.Status.Zones, v1alpha1.EndpointZone{
			Namespace: z[i].Namespace, Name: z[i].Name, ZoneName: z[i].Spec.ZoneName, RRsets: []string{dnsName + "./A"},
		})
	}
	return e
}

// A DNSEndpoint of one namespace has names in zones of another, served by real servers.
func TestEndpointsFollowTheServers(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nown A 192.0.2.7"},
		bind.Zone{Name: "other.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z, other := fakekube.Zone("example.test", "primary", "secondary"), fakekube.Zone("other.test", "primary", "secondary")
	for _, z := range []*v1beta1.DNSZone{z, other} {
		z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "shop"}
		w.Apply(z)
	}
	w.Apply(w.Record(z, "own", "192.0.2.7"))
	e := endpoints("shop", "web", []*v1beta1.DNSZone{z, other}, "www.example.test", "www.other.test")
	e.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: ns} // Both sides have to consent.
	w.Apply(e)
	get := func() *syncv1.SyncStatus {
		t.Helper()
		s, err := w.verdicts.getVerdict(w.ctx, desired.Key{Kind: subject.EndpointKind.Kind, Namespace: "shop", Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	inStep := "InSync primary-0=InSync secondary-0=InSync primary-0=InSync secondary-0=InSync"
	w.Eventually("both zones are seen", func() bool { return get().Zone == "example.test,other.test" })
	if s := get(); states(s) != inStep || len(s.RRsets) != 2 || s.Servers[0].Zone != "example.test" || s.Servers[3].Zone != "other.test" {
		t.Errorf("%s: %+v", states(s), s)
	}
	if s := w.get("dnszone.example.test"); !s.Status.InSync || s.Summary.Records != 4 || s.Servers[0].Records.Undeclared != 0 {
		t.Errorf("the zone counts %+v, %+v; want what the endpoint declares among it", s.Summary, s.Servers[0].Records)
	}
	for name, tc := range map[string]struct {
		query query
		want  []string
	}{
		"its namespace":          {query{namespace: "shop"}, []string{"dnsendpoint.web"}},
		"one of its zones":       {query{fields: fields.ParseSelectorOrDie("zone=other.test")}, []string{"dnszone.other.test", "dnsendpoint.web"}},
		"not one of its zones":   {query{namespace: "shop", fields: fields.ParseSelectorOrDie("zone!=other.test")}, nil},
		"its kind":               {query{fields: fields.ParseSelectorOrDie("kind=DNSEndpoint")}, []string{"dnsendpoint.web"}},
		"of the zones' own part": {query{namespace: ns, fields: fields.ParseSelectorOrDie("kind=DNSEndpoint")}, nil},
	} {
		if diff := cmp.Diff(tc.want, names(w.list(tc.query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	events := w.watch(query{namespace: "shop"}, store.WatchOptions{})
	events.until("dnsendpoint.web", inStep)
	fakekube.Update(t, primary, "other.test.", "www.other.test.", "192.0.2.9")
	events.until("dnsendpoint.web", "OutOfSync primary-0=InSync secondary-0=InSync primary-0=Divergent secondary-0=InSync")
	fakekube.Update(t, primary, "other.test.", "www.other.test.", "192.0.2.7")
	events.until("dnsendpoint.web", inStep)

	// A zone that admits it no more is told by the zone's event alone.
	other.Annotations = nil
	w.Apply(other)
	events.until("dnsendpoint.web", "Failed primary-0=InSync secondary-0=InSync primary-0=Stale secondary-0=Stale")
	if s := get(); s.Status.FailureReason != "NoMatchingZone" {
		t.Errorf("%s %s, want NoMatchingZone", s.Status.FailureReason, s.Status.FailureMessage)
	}
	w.Remove(e)
	events.until("dnsendpoint.web", "gone")
}
