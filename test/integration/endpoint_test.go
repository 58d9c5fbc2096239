package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Names that other programs hand over in DNSEndpoints. All tests share a primary, a secondary and the zones
// endpoint.example, sub.endpoint.example and 2.0.192.in-addr.arpa.
func TestEndpoint(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "endpoint.example", 1, 1)
	sub, reverse := f.newZone(t, "sub.endpoint.example"), f.newZone(t, "2.0.192.in-addr.arpa")

	f.runSub("every type, over several zones", func(f *fixture) { endpointEveryType(f, sub.inTest(f), reverse.inTest(f)) })
	f.runSub("life", endpointLife)
	f.runSub("no zone", endpointWithoutZone)
	f.runSub("beside records", endpointBesideRecords)
	f.runSub("mistakes", endpointMistakes)
	f.runSub("of another namespace", endpointOfAnotherNamespace)
	f.runSub("the zone comes and goes", endpointZoneComesAndGoes)
}

// inTest is the fixture in another test.
func (f *fixture) inTest(t *fixture) *fixture {
	s := *f
	s.T = t.T
	return &s
}

// dnsEndpoint declares names as external-dns does.
func (f *fixture) dnsEndpoint(object string, endpoints ...*v1alpha1.Endpoint) *v1alpha1.DNSEndpoint {
	return &v1alpha1.DNSEndpoint{ObjectMeta: f.meta(object, nil), Spec: v1alpha1.DNSEndpointSpec{Endpoints: endpoints}}
}

func endpointEntry(name, rrtype string, ttl int64, targets ...string) *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{DNSName: name, RecordType: rrtype, RecordTTL: ttl, Targets: targets}
}

func endpointConditions(e *v1alpha1.DNSEndpoint) []metav1.Condition { return e.Status.Conditions }

// waitProgrammed waits until a DNSEndpoint is accepted and programmed, and its status lists exactly these RRsets by zone object.
func (f *fixture) waitProgrammed(e *v1alpha1.DNSEndpoint, zones map[string][]string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		for _, kind := range []string{"Accepted", "Programmed"} {
			c := meta.FindStatusCondition(e.Status.Conditions, kind)
			if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != e.Generation {
				return fmt.Errorf("condition %s is %+v", kind, c)
			}
		}
		got := map[string][]string{}
		for _, z := range e.Status.Zones {
			got[z.Name] = slices.Sorted(slices.Values(z.RRsets))
		}
		if fmt.Sprint(got) != fmt.Sprint(zones) {
			return fmt.Errorf("status.zones lists %v, want %v", got, zones)
		}
		if e.Status.ObservedGeneration != e.Generation || !controllerutil.ContainsFinalizer(e, v1beta1.Finalizer) {
			return fmt.Errorf("observedGeneration %d of %d, finalizers %v", e.Status.ObservedGeneration, e.Generation, e.Finalizers)
		}
		return nil
	})
}

func endpointEveryType(f, sub, reverse *fixture) {
	e := f.dnsEndpoint("every",
		endpointEntry("www.endpoint.example", "A", 180, "192.0.2.2", "192.0.2.1"),
		endpointEntry("WWW.endpoint.example.", "AAAA", 0, "2001:DB8::1"),
		endpointEntry("alias.sub.endpoint.example", "CNAME", 60, "target.example.net"),
		endpointEntry("sub.endpoint.example", "MX", 0, "10 mail.example.net", "20 mail2.example.net."),
		endpointEntry("deep.sub.endpoint.example", "TXT", 0, `"quoted text"`, "plain"),
		endpointEntry("_sip._tcp.endpoint.example", "SRV", 0, "1 2 5060 sip.example.net"),
		endpointEntry("endpoint.example", "CAA", 0, `0 issue "ca.example.net"`),
		endpointEntry("team.endpoint.example", "NS", 0, "ns.example.net"),
		endpointEntry("1.2.0.192.in-addr.arpa", "PTR", 0, "www.endpoint.example"),
	)
	f.create(e)
	f.waitSameContent(kube.Settle, contains("www.endpoint.example. 180 A 192.0.2.1 | 192.0.2.2", "www.endpoint.example. 3600 AAAA 2001:db8::1",
		"_sip._tcp.endpoint.example. 3600 SRV 1 2 5060 sip.example.net.", `endpoint.example. 3600 CAA 0 issue "ca.example.net"`,
		"team.endpoint.example. 3600 NS ns.example.net."))
	sub.waitSameContent(kube.Settle, contains("alias.sub.endpoint.example. 60 CNAME target.example.net.",
		"sub.endpoint.example. 3600 MX 10 mail.example.net. | 20 mail2.example.net.", `deep.sub.endpoint.example. 3600 TXT "plain" | "quoted text"`))
	reverse.waitSameContent(kube.Settle, contains("1.2.0.192.in-addr.arpa. 3600 PTR www.endpoint.example."))
	f.waitServed("1.2.0.192.in-addr.arpa", "PTR", "www.endpoint.example.")
	f.waitProgrammed(e, map[string][]string{
		"main": {"_sip._tcp.endpoint.example./SRV", "endpoint.example./CAA", "team.endpoint.example./NS", "www.endpoint.example./A", "www.endpoint.example./AAAA"},
		"sub":  {"alias.sub.endpoint.example./CNAME", "deep.sub.endpoint.example./TXT", "sub.endpoint.example./MX"},
		"2":    {"1.2.0.192.in-addr.arpa./PTR"},
	})
	if err := f.client.Delete(f.Context(), e); err != nil {
		f.Fatal(err)
	}
	f.waitGone(e)
	f.waitSameContent(kube.Settle, containsNo("www.endpoint.example.", "_sip._tcp.endpoint.example.", "team.endpoint.example."))
	sub.waitSameContent(kube.Settle, containsNo("alias.sub.endpoint.example.", "deep.sub.endpoint.example."))
	reverse.waitSameContent(kube.Settle, containsNo("1.2.0.192.in-addr.arpa."))
}

// Endpoints are changed, renamed, added and removed within their object.
func endpointLife(f *fixture) {
	e := f.dnsEndpoint("life", endpointEntry("one.endpoint.example", "A", 0, "192.0.2.1"), endpointEntry("two.endpoint.example", "A", 0, "192.0.2.2"))
	f.create(e)
	f.waitSameContent(kube.Settle, contains("one.endpoint.example. 3600 A 192.0.2.1", "two.endpoint.example. 3600 A 192.0.2.2"))
	change(f, e, func(e *v1alpha1.DNSEndpoint) {
		e.Spec.Endpoints[0].Targets, e.Spec.Endpoints[0].RecordTTL = []string{"192.0.2.3"}, 60
		e.Spec.Endpoints[1].DNSName = "moved.sub.endpoint.example"
		e.Spec.Endpoints = append(e.Spec.Endpoints, endpointEntry("three.endpoint.example", "TXT", 0, "new"))
	})
	f.waitSameContent(kube.Settle, passesBoth(contains("one.endpoint.example. 60 A 192.0.2.3", `three.endpoint.example. 3600 TXT "new"`), containsNo("two.endpoint.example.")))
	f.waitServed("moved.sub.endpoint.example", "A", "192.0.2.2")
	f.waitProgrammed(e, map[string][]string{"main": {"one.endpoint.example./A", "three.endpoint.example./TXT"}, "sub": {"moved.sub.endpoint.example./A"}})
	change(f, e, func(e *v1alpha1.DNSEndpoint) { e.Spec.Endpoints = e.Spec.Endpoints[2:] })
	f.waitSameContent(kube.Settle, passesBoth(contains(`three.endpoint.example. 3600 TXT "new"`), containsNo("one.endpoint.example.")))
	f.waitServed("moved.sub.endpoint.example", "A")
	f.waitProgrammed(e, map[string][]string{"main": {"three.endpoint.example./TXT"}})
	if err := f.client.Delete(f.Context(), e); err != nil {
		f.Fatal(err)
	}
	f.waitGone(e)
	f.waitSameContent(kube.Settle, containsNo("three.endpoint.example."))
}

// An endpoint that is in no zone is reported, and the others of its object are served.
func endpointWithoutZone(f *fixture) {
	e := f.dnsEndpoint("homeless", endpointEntry("here.endpoint.example", "A", 0, "192.0.2.1"), endpointEntry("www.nowhere.example", "A", 0, "192.0.2.2"))
	f.create(e)
	f.waitSameContent(kube.Settle, contains("here.endpoint.example. 3600 A 192.0.2.1"))
	waitCondition(f, e, endpointConditions, "Accepted", metav1.ConditionFalse, "NoMatchingZone", "www.nowhere.example")
	alone := f.dnsEndpoint("alone", endpointEntry("notendpoint.example", "A", 0, "192.0.2.2"))
	f.create(alone)
	waitCondition(f, alone, endpointConditions, "Accepted", metav1.ConditionFalse, "NoMatchingZone", "notendpoint.example")
	for _, o := range []client.Object{e, alone} {
		if err := f.client.Delete(f.Context(), o); err != nil {
			f.Fatal(err)
		}
		f.waitGone(o)
	}
}

// Records and endpoints are united, and the older wins where they exclude each other.
func endpointBesideRecords(f *fixture) {
	record := f.aRecord("beside-a", "beside", "192.0.2.1")
	f.create(record)
	f.waitReady(record)
	e := f.dnsEndpoint("beside-b", endpointEntry("beside.endpoint.example", "A", 60, "192.0.2.2"))
	f.create(e)
	f.waitSameContent(kube.Settle, contains("beside.endpoint.example. 60 A 192.0.2.1 | 192.0.2.2"))
	change(f, e, func(e *v1alpha1.DNSEndpoint) {
		e.Spec.Endpoints = []*v1alpha1.Endpoint{endpointEntry("beside.endpoint.example", "CNAME", 0, "other.example.net"), endpointEntry("fine.endpoint.example", "A", 0, "192.0.2.3")}
	})
	waitCondition(f, e, endpointConditions, "Accepted", metav1.ConditionFalse, "Conflict", "ARecord", "beside-a")
	f.waitSameContent(kube.Settle, contains("beside.endpoint.example. 3600 A 192.0.2.1", "fine.endpoint.example. 3600 A 192.0.2.3"))
	if err := f.client.Delete(f.Context(), record); err != nil {
		f.Fatal(err)
	}
	f.waitGone(record)
	f.waitSameContent(kube.Settle, contains("beside.endpoint.example. 3600 CNAME other.example.net."))
	f.waitProgrammed(e, map[string][]string{"main": {"beside.endpoint.example./CNAME", "fine.endpoint.example./A"}})
	if err := f.client.Delete(f.Context(), e); err != nil {
		f.Fatal(err)
	}
	f.waitGone(e)
}

// What is wrong with one endpoint, by itself, is refused or reported with its index; it never holds up the others.
func endpointMistakes(f *fixture) {
	for name, c := range map[string]struct {
		bad   *v1alpha1.Endpoint
		words []string
	}{
		"unknown type": {endpointEntry("bad.endpoint.example", "BOGUS", 0, "x"), []string{"spec.endpoints[1]", "recordType", "BOGUS", "IANA registry"}},
		"no type":      {endpointEntry("bad.endpoint.example", "", 0, "192.0.2.1"), []string{"spec.endpoints[1]", "recordType"}},
		"identifier": {&v1alpha1.Endpoint{DNSName: "bad.endpoint.example", RecordType: "A", SetIdentifier: "blue", Targets: []string{"192.0.2.1"}},
			[]string{"spec.endpoints[1]", "setIdentifier"}},
		"address": {endpointEntry("bad.endpoint.example", "A", 0, "192.0.2.300"), []string{"spec.endpoints[1].targets[0]", "192.0.2.300"}},
		"target":  {endpointEntry("bad.endpoint.example", "MX", 0, "mail.example.net"), []string{"spec.endpoints[1].targets[0]"}},
	} {
		f.runSub(name, func(f *fixture) {
			e := f.dnsEndpoint("mistake-"+strings.ReplaceAll(name, " ", "-"), endpointEntry("good.endpoint.example", "A", 0, "192.0.2.1"), c.bad)
			if err := f.client.Create(f.Context(), e); err != nil {
				if !containsAll(err.Error(), c.words) {
					f.Errorf("refused with %v, want %q", err, c.words)
				}
				return
			}
			waitCondition(f, e, endpointConditions, "Accepted", metav1.ConditionFalse, "Invalid", c.words...)
			f.waitSameContent(kube.Settle, passesBoth(contains("good.endpoint.example. 3600 A 192.0.2.1"), containsNo("bad.endpoint.example.")))
			if err := f.client.Delete(f.Context(), e); err != nil {
				f.Fatal(err)
			}
			f.waitGone(e)
		})
	}
}

// The endpoints of another namespace are taken while the zone's annotation names it.
func endpointOfAnotherNamespace(f *fixture) {
	guest := &fixture{T: f.T, client: f.client, namespace: kube.Namespace(f, "it-guest")}
	e := guest.dnsEndpoint("www", endpointEntry("guest.endpoint.example", "A", 0, "192.0.2.1"))
	e.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: f.namespace} // Both sides have to consent.
	guest.create(e)
	waitCondition(guest, e, endpointConditions, "Accepted", metav1.ConditionFalse, "NoMatchingZone")
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}
	allow := func(namespaces string) {
		change(f, zone, func(z *v1beta1.DNSZone) {
			z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: namespaces}
		})
	}
	for _, namespaces := range []string{"nobody," + guest.namespace, "*"} {
		allow(namespaces)
		f.waitSameContent(kube.Settle, contains("guest.endpoint.example. 3600 A 192.0.2.1"))
		guest.waitProgrammed(e, map[string][]string{"main": {"guest.endpoint.example./A"}})
		allow("nobody")
		f.waitSameContent(kube.Settle, containsNo("guest.endpoint.example."))
		waitCondition(guest, e, endpointConditions, "Accepted", metav1.ConditionFalse, "NoMatchingZone")
	}
	if err := guest.client.Delete(f.Context(), e); err != nil {
		f.Fatal(err)
	}
	guest.waitGone(e)
}

// A longer zone takes endpoints over from the shorter one, and loses them again when it is deleted.
func endpointZoneComesAndGoes(f *fixture) {
	e := f.dnsEndpoint("moving", endpointEntry("www.moving.endpoint.example", "A", 0, "192.0.2.1"))
	f.create(e)
	f.waitSameContent(kube.Settle, contains("www.moving.endpoint.example. 3600 A 192.0.2.1"))
	longer := f.newZone(f.T, "moving.endpoint.example")
	longer.waitSameContent(kube.Settle, contains("www.moving.endpoint.example. 3600 A 192.0.2.1"))
	f.waitSameContent(kube.Settle, containsNo("www.moving.endpoint.example."))
	f.waitProgrammed(e, map[string][]string{"moving": {"www.moving.endpoint.example./A"}})
	f.deleteAnyway(&v1beta1.DNSZone{ObjectMeta: f.meta("moving", nil)})
	f.waitSameContent(kube.Settle, contains("www.moving.endpoint.example. 3600 A 192.0.2.1"))
	f.waitProgrammed(e, map[string][]string{"main": {"www.moving.endpoint.example./A"}})
}
