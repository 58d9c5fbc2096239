package externaldns

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// storedObject is a DNSEndpoint as this package makes it, of which nothing is served.
func storedObject(source string, endpoints ...*v1alpha1.Endpoint) v1alpha1.DNSEndpoint {
	r, err := parseResource(source)
	if err != nil {
		panic(err)
	}
	return v1alpha1.DNSEndpoint{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: r.objectName("external-dns"), Generation: 1,
			Labels: map[string]string{ownerLabel: "external-dns"}, Annotations: map[string]string{sourceAnnotation: source},
		},
		Spec: v1alpha1.DNSEndpointSpec{Endpoints: endpoints},
	}
}

// serveAll gives a DNSEndpoint the status that it has when all of it is served.
func serveAll(o *v1alpha1.DNSEndpoint) {
	o.Status = v1alpha1.DNSEndpointStatus{ObservedGeneration: o.Generation, Zones: []v1alpha1.EndpointZone{{Namespace: o.Namespace, Name: "zone"}}}
	for _, e := range o.Spec.Endpoints {
		o.Status.Zones[0].RRsets = append(o.Status.Zones[0].RRsets, rrsetText(e))
	}
}

// endpoint is one as it is stored.
func endpoint(name, rrtype string, targets ...string) *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{DNSName: name + ".", RecordType: rrtype, Targets: targets, Labels: map[string]string{resourceLabel: "service/shop/web"}}
}

func TestMergeChanges(t *testing.T) {
	const web, other = "service/shop/web", "ingress/blog/web"
	stored := storedObject(web, endpoint("a.example.com", "A", "192.0.2.1"), endpoint("b.example.com", "A", "192.0.2.2"))
	foreign := storedObject(web, endpoint("c.example.com", "A", "192.0.2.3"))
	foreign.Name = "made-by-hand"
	elsewhere := storedObject(web, endpoint("c.example.com", "A", "192.0.2.3"))
	elsewhere.Namespace = "evil"
	going := storedObject("service/shop/going", endpoint("going.example.com", "A", "192.0.2.9"))
	going.DeletionTimestamp = &metav1.Time{}
	all := []v1alpha1.DNSEndpoint{stored, foreign, elsewhere, going}
	tests := map[string]struct {
		changes planChanges
		want    map[string]string // the endpoints of each source object that is written
		refused int
	}{
		"nothing": {want: map[string]string{}},
		"another source object": {
			changes: planChanges{Create: []*v1alpha1.Endpoint{found(other, "a.example.com", "A", 0, "192.0.2.7")}},
			want:    map[string]string{other: "a.example.com. A 192.0.2.7"},
		},
		"one more name": {
			changes: planChanges{Create: []*v1alpha1.Endpoint{found(web, "c.example.com", "TXT", 0, "x")}},
			want:    map[string]string{web: `a.example.com. A 192.0.2.1, b.example.com. A 192.0.2.2, c.example.com. TXT "x"`},
		},
		"what is stored": {
			changes: planChanges{UpdateNew: []*v1alpha1.Endpoint{found(web, "A.example.com.", "A", 0, "192.0.2.1")}},
			want:    map[string]string{},
		},
		"other targets, another type": {
			changes: planChanges{
				UpdateNew: []*v1alpha1.Endpoint{found(web, "a.example.com", "A", 0, "192.0.2.8")},
				Delete:    []*v1alpha1.Endpoint{found(web, "b.example.com", "A", 0)},
				Create:    []*v1alpha1.Endpoint{found(web, "b.example.com", "CNAME", 0, "host.example.net")},
			},
			want: map[string]string{web: "a.example.com. A 192.0.2.8, b.example.com. CNAME host.example.net"},
		},
		"all names": {
			changes: planChanges{Delete: []*v1alpha1.Endpoint{found(web, "a.example.com", "A", 0), found(web, "b.example.com", "A", 0)}},
			want:    map[string]string{web: ""},
		},
		"a name of another source object": {
			changes: planChanges{Delete: []*v1alpha1.Endpoint{found(other, "a.example.com", "A", 0), nil, {}}},
			want:    map[string]string{},
		},
		"an object that is being deleted": {
			changes: planChanges{Create: []*v1alpha1.Endpoint{found("service/shop/going", "new.example.com", "A", 0, "192.0.2.1")}},
			want:    map[string]string{"service/shop/going": "new.example.com. A 192.0.2.1"},
		},
		"an invalid one among good ones": {
			changes: planChanges{Create: []*v1alpha1.Endpoint{found(other, "x.example.com", "A", 0, "x"), found(other, "y.example.com", "A", 0, "192.0.2.5")}},
			want:    map[string]string{other: "y.example.com. A 192.0.2.5"}, refused: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			next, refused := mergeChanges(all, tc.changes, "external-dns")
			got := map[string]string{}
			for _, d := range next {
				var lines []string
				for _, e := range d.endpoints {
					lines = append(lines, e.DNSName+" "+e.RecordType+" "+strings.Join(e.Targets, ","))
				}
				got[d.resource.String()] = strings.Join(lines, ", ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("declarations (-want +got):\n%s", diff)
			}
			if len(refused) != tc.refused {
				t.Errorf("refused %v, want %d", refused, tc.refused)
			}
		})
	}
}

// What is declared and not served is a record without targets: external-dns can delete it, and sees that it is not there.
func TestServedRecordsAreTrue(t *testing.T) {
	served := storedObject("service/shop/web", endpoint("a.example.com", "A", "192.0.2.1"), endpoint("b.example.com", "A", "192.0.2.2"))
	serveAll(&served)
	served.Status.Zones[0].RRsets = served.Status.Zones[0].RRsets[:1]
	changed := storedObject("service/shop/new", endpoint("c.example.com", "A", "192.0.2.3"))
	serveAll(&changed)
	changed.Generation++
	foreign := storedObject("service/shop/web", endpoint("d.example.com", "A", "192.0.2.4"))
	foreign.Namespace = "evil"
	serveAll(&foreign)
	var got []string
	for _, e := range servedRecords([]v1alpha1.DNSEndpoint{served, changed, foreign}, "external-dns") {
		got = append(got, line(e))
	}
	want := []string{"a.example.com 0 A 192.0.2.1 [service/shop/web]", "b.example.com 0 A  [service/shop/web]", "c.example.com 0 A  [service/shop/new]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// No two source objects share a DNSEndpoint, and every name is one that Kubernetes takes.
func TestObjectName(t *testing.T) {
	long := strings.Repeat("a", 253)
	names := map[string]resource{}
	for _, r := range []resource{{"service", "n", "a"}, {"ingress", "n", "a"}, {"service", "n", "ingress.a"}, {"service", "n", long}, {"service", "n", long[1:] + "b"}, {"HTTPProxy", "n", "a"}} {
		for _, owner := range []string{"external-dns", "service"} {
			name := r.objectName(owner)
			if other, taken := names[name]; taken {
				t.Errorf("%v and %v are both %s", r, other, name)
			}
			if names[name] = r; len(name) > 253 || strings.ToLower(name) != name {
				t.Errorf("%v: %q", r, name)
			}
		}
	}
}
