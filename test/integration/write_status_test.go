package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Passes that have nothing to do write nothing, and the change of one record writes no other.
func writeStatusIsQuiet(f *fixture) {
	one, two := f.aRecord("quiet-one", "one", "192.0.2.1"), f.aRecord("quiet-two", "two", "192.0.2.2")
	f.create(one, two)
	f.waitReady(one, two)
	f.waitSameContent(kube.Settle, contains("one.quiet.example. 3600 A 192.0.2.1", "two.quiet.example. 3600 A 192.0.2.2"))
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	watched := []client.Object{one, two, zone, &v1beta1.Bind9Cluster{ObjectMeta: f.meta("dns", nil)},
		&v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-primary-0", nil)}, &v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-secondary-0", nil)}}
	f.waitQuiet(3, watched...)

	change(f, one, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.9"} })
	before := two.ResourceVersion
	f.waitReady(one)
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(two), two); err != nil {
		f.Fatal(err)
	}
	if two.ResourceVersion != before {
		f.Errorf("the change of one record wrote another: %v", two.ManagedFields)
	}
}

// waitQuiet waits until so many passes in a row, over the fixture's zone and over the servers of the cluster, have written none of the objects.
func (f *fixture) waitQuiet(passes int, objects ...client.Object) {
	f.Helper()
	idle := &v1beta1.Bind9Instance{ObjectMeta: f.meta(f.object+"-idle", nil)}
	idle.Spec.Role, idle.Spec.ClusterRef = v1beta1.RoleSecondary, "nowhere"
	if err := client.IgnoreAlreadyExists(f.client.Create(f.Context(), idle)); err != nil {
		f.Fatal(err)
	}
	quiet := 0
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		for quiet < passes {
			before, err := f.versions(ctx, objects)
			if err != nil {
				return err
			}
			if err := f.forcePass(ctx, idle, before); err != nil {
				return err
			}
			after, err := f.versions(ctx, objects)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(before, after); diff != "" {
				quiet = 0
				return fmt.Errorf("a pass that had nothing to do has written (-before +after):\n%s", diff)
			}
			quiet++
		}
		return nil
	})
}

// versions returns the resourceVersions of objects as they are now.
func (f *fixture) versions(ctx context.Context, objects []client.Object) (map[string]string, error) {
	all := map[string]string{}
	for _, o := range objects {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return nil, err
		}
		all[versionKey(o)] = o.GetResourceVersion()
	}
	return all, nil
}

func versionKey(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

// forcePass has the servers of the cluster, and with them all of their zones, looked at anew, and waits until others of the same kinds that
// changed later have been looked at. What that writes itself, it notes in versions.
func (f *fixture) forcePass(ctx context.Context, idle *v1beta1.Bind9Instance, versions map[string]string) error {
	f.Helper()
	for _, name := range []string{"dns-primary-0", "dns-primary-1", "dns-secondary-0"} {
		instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta(name, nil)}
		look := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.lockstep/look":"%d"}}}`, time.Now().UnixNano())
		if err := f.client.Patch(ctx, instance, client.RawPatch(types.MergePatchType, look)); err != nil {
			return err
		}
		if key := versionKey(instance); versions[key] != "" {
			versions[key] = instance.ResourceVersion
		}
	}
	other := &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}
	change(f, other, func(z *v1beta1.DNSZone) { z.Spec.SOARecord.Refresh++ })
	waitCondition(f, other, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
	change(f, idle, func(i *v1beta1.Bind9Instance) { i.Spec.Replicas = new(1 - ptr.Deref(i.Spec.Replicas, 1)) })
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		err := f.client.Get(ctx, client.ObjectKeyFromObject(idle), idle)
		if err == nil && idle.Status.ObservedGeneration != idle.Generation {
			err = fmt.Errorf("the status of %s is about generation %d of %d", idle.Name, idle.Status.ObservedGeneration, idle.Generation)
		}
		return err
	})
	return nil
}

// Serials count in a circle (RFC 1982): a change beyond the greatest one reaches every server.
func writeSerialWraps(f *fixture) {
	record := f.aRecord("wrap-www", "www", "192.0.2.1")
	f.create(record)
	start := f.waitSameContent(kube.Settle, contains("www.wrap.example. 3600 A 192.0.2.1")).serial
	const nearlyHalf = 1<<31 - 1
	for _, serial := range []uint32{rrset.AddSerial(start, nearlyHalf), 4294967290} {
		for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
			f.setSerialByHand(pod, serial)
		}
		if got := f.waitSameContent(kube.Settle, contains("www.wrap.example. 3600 A 192.0.2.1")).serial; got < serial {
			f.Fatalf("the serial is %d, set to %d", got, serial)
		}
	}
	change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.2"} })
	after := f.waitSameContent(kube.Settle, contains("www.wrap.example. 3600 A 192.0.2.2")).serial
	f.waitReady(record)
	f.Logf("serial %d follows 4294967290", after)
}

// setSerialByHand sets the serial of the zone on a primary by hand.
func (f *fixture) setSerialByHand(pod string, serial uint32) {
	f.Helper()
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	soa, err := queryRdata(servers[pod], dns.Fqdn(f.zone), dns.TypeSOA)
	if err != nil || len(soa) != 1 {
		f.Fatalf("the SOA of %s on %s: %v %v", f.zone, pod, soa, err)
	}
	rr := parseRecords([]string{dns.Fqdn(f.zone) + " 3600 SOA " + soa[0]})[0].(*dns.SOA)
	rr.Serial = serial
	f.updateByHand(pod, func(m *dns.Msg) { m.Insert([]dns.RR{rr}) })
}

// The Events of a record and of a DNSEndpoint report when it was programmed and why it was not, once each.
func writeEvents(f *fixture) {
	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
		f.updateByHand(pod, addRecords("taken.events.example. 300 CNAME elsewhere.example.net."))
	}
	good, bad := f.aRecord("events-good", "good", "192.0.2.1"), f.aRecord("events-bad", "taken", "192.0.2.2")
	f.create(good, bad)
	f.waitReady(good)
	waitCondition(f, v1beta1.Record(bad), recordConditions, "Programmed", metav1.ConditionFalse, "Conflict")
	f.waitEvent(good, "Normal RecordProgrammed", "good.events.example.")
	f.waitEvent(bad, "Warning RecordFailed", "CNAME", "taken.events.example.")

	change(f, good, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.9"} })
	f.waitReady(good)
	f.waitEvent(good, "Normal RecordProgrammed", "good.events.example.")
	if other := f.events(f.Context(), bad); len(other) != 1 {
		f.Errorf("Events of %s: %q, want one", bad.Name, other)
	}

	endpoint := f.dnsEndpoint("events-endpoint", endpointEntry("taken.events.example", "AAAA", 0, "2001:db8::1"))
	f.create(endpoint)
	waitCondition(f, endpoint, endpointConditions, "Programmed", metav1.ConditionFalse, "Conflict", "spec.endpoints[0] taken.events.example./AAAA: ", "CNAME")
	waitCondition(f, endpoint, endpointConditions, "Accepted", metav1.ConditionTrue, "Accepted")
	f.waitEvent(endpoint, "Warning RecordFailed", "Conflict: ", "CNAME", "taken.events.example.")
	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
		f.updateByHand(pod, removeRRsets("taken.events.example. 0 CNAME x."))
	}
	f.waitProgrammed(endpoint, map[string][]string{f.object: {"taken.events.example./AAAA"}})
	f.waitEvent(endpoint, "Normal RecordProgrammed", "every primary of zone events.example answers with 1 endpoint")
}

// waitEvent waits until an object has an Event of the type and reason with all of the words.
func (f *fixture) waitEvent(o client.Object, head string, words ...string) {
	f.Helper()
	f.waitEventWithin(kube.Settle, o, head, words...)
}

func (f *fixture) waitEventWithin(timeout kube.Patience, o client.Object, head string, words ...string) {
	f.Helper()
	kube.Eventually(f, timeout, func(ctx context.Context) error {
		all := f.events(ctx, o)
		if !slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, head) && containsAll(e, words) }) {
			return fmt.Errorf("the Events of %s are %q, want %s with %q", o.GetName(), all, head, words)
		}
		return nil
	})
}

// events are the Events of an object, each as "type reason: message".
func (f *fixture) events(ctx context.Context, o client.Object) []string {
	f.Helper()
	var list corev1.EventList
	if err := f.client.List(ctx, &list, client.InNamespace(f.namespace), client.MatchingFields{"involvedObject.uid": string(o.GetUID())}); err != nil {
		f.Error(err)
	}
	var all []string
	for _, e := range list.Items {
		all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	return all
}
