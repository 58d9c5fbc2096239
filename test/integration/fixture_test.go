// Package integration tests Lockstep, installed in a real cluster, through the objects that users write and the answers
// that BIND gives. Files are named for areas: write, fleet, read, admission, serve.
package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

// fixture is one zone on servers of its own, in a namespace of its own.
type fixture struct {
	*testing.T
	client    client.Client
	namespace string
	// zone is the zone's DNS name, object its DNSZone and the value of the label "zone" that it selects.
	zone, object string
	// size is the number of servers; 0 when the test does not say.
	size int
}

// newFixture starts a cluster "dns" with the given numbers of servers and declares the zone on it. The zone selects
// records by the label zone=main.
func newFixture(t *testing.T, zone string, primaries, secondaries int32) *fixture {
	t.Helper()
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it"), zone: zone, object: "main", size: int(primaries + secondaries)}
	f.create(f.cluster("dns", primaries, secondaries), f.dnsZone("main", zone))
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9cluster/dns", "dnszone/main")
	return f
}

// newZone creates a zone for a test on the servers of the fixture. The DNSZone is named for the zone's first label and
// selects records by the label zone=<that name>; edit may change it before it is made.
func (f *fixture) newZone(t *testing.T, zone string, edit ...func(*v1beta1.DNSZone)) *fixture {
	t.Helper()
	s := &fixture{T: t, client: f.client, namespace: f.namespace, zone: zone, size: f.size}
	s.object, _, _ = strings.Cut(zone, ".")
	z := s.dnsZone(s.object, zone)
	for _, e := range edit {
		e(z)
	}
	s.create(z)
	kube.WaitReady(s, s.client, s.namespace, kube.Settle, "dnszone/"+s.object)
	return s
}

// runSub runs a subtest on the fixture.
func (f *fixture) runSub(name string, run func(*fixture)) {
	f.Helper()
	f.Run(name, func(t *testing.T) {
		s := *f
		s.T = t
		run(&s)
	})
}

// labels are those of an object that the fixture's zone selects.
func (f *fixture) labels() map[string]string {
	if f.object == "" {
		return map[string]string{"zone": "main"}
	}
	return map[string]string{"zone": f.object}
}

func (f *fixture) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels}
}

func (f *fixture) cluster(name string, primaries, secondaries int32) *v1beta1.Bind9Cluster {
	c := &v1beta1.Bind9Cluster{ObjectMeta: f.meta(name, nil)}
	c.Spec.Version = os.Getenv("LOCKSTEP_BIND") // The default release if it is empty.
	c.Spec.Primary = &v1beta1.RoleConfig{Replicas: &primaries}
	c.Spec.Secondary = &v1beta1.RoleConfig{Replicas: &secondaries}
	return c
}

func (f *fixture) dnsZone(name, zone string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: f.meta(name, nil)}
	z.Spec.ZoneName, z.Spec.ClusterRef = zone, "dns"
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + zone + ".", AdminEmail: "hostmaster." + zone + ".",
		Refresh: 3600, Retry: 600, Expire: 604800}
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": name}}}}
	return z
}

// aRecord declares an A record of the fixture's zone.
func (f *fixture) aRecord(object, name string, addresses ...string) *v1beta1.ARecord {
	r := &v1beta1.ARecord{ObjectMeta: f.meta(object, f.labels())}
	r.Spec.Name, r.Spec.IPv4Addresses = name, addresses
	return r
}

func (f *fixture) create(objects ...client.Object) {
	f.Helper()
	for _, o := range objects {
		if err := f.client.Create(f.Context(), o); err != nil {
			f.Fatal(err)
		}
	}
}

// checkColumns compares what `kubectl get` shows, up to the age.
func (f *fixture) checkColumns(kind, header, row string) {
	f.Helper()
	lines := strings.Split(f.kubectl("get", kind), "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != header {
		f.Errorf("kubectl get %s has the columns %s, want %s", kind, got, header)
	}
	if got := strings.Join(strings.Fields(lines[1]), " "); !strings.HasPrefix(got, row+" ") {
		f.Errorf("kubectl get %s shows %s, want %s", kind, got, row)
	}
}

// deleteAnyway deletes an object that others depend on, as one does who means it.
func (f *fixture) deleteAnyway(o client.Object) {
	f.Helper()
	allow := []byte(`{"metadata":{"annotations":{"` + v1beta1.AllowDeletionAnnotation + `":"true"}}}`)
	if err := f.client.Patch(f.Context(), o, client.RawPatch(types.MergePatchType, allow)); err != nil {
		f.Fatal(err)
	}
	if err := f.client.Delete(f.Context(), o); err != nil {
		f.Fatal(err)
	}
}

// change reads an object anew, changes it and writes it, until nobody else writes in between.
func change[T client.Object](f *fixture, o T, edit func(T)) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit(o)
		return f.client.Update(ctx, o)
	})
}

// createOptions creates a ConfigMap with the options that are generated for an instance, one more, and clauses behind them.
func (f *fixture) createOptions(object, instance, option, clauses string) {
	f.Helper()
	mine := &corev1.ConfigMap{ObjectMeta: f.meta(object, nil)}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		generated := &corev1.ConfigMap{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: instance + "-config"}, generated); err != nil {
			return err
		}
		options, found := strings.CutPrefix(generated.Data[named.OptionsFile], "options {")
		if !found {
			return fmt.Errorf("%s has another form:\n%s", named.OptionsFile, generated.Data[named.OptionsFile])
		}
		mine.Data = map[string]string{named.OptionsFile: "options {\n\t" + option + options + clauses}
		return nil
	})
	f.create(mine)
}

// servers are the addresses of named in the running pods, by pod name.
func (f *fixture) servers(ctx context.Context) (map[string]string, error) {
	return kube.Servers(ctx, f.client, f.namespace)
}

// waitServed waits until every server answers the question with exactly these rdata; none means that the name or the type
// does not exist.
func (f *fixture) waitServed(name, rrtype string, rdata ...string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			got, err := queryRdata(server, dns.Fqdn(name), dns.StringToType[rrtype])
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
			if !slices.Equal(got, rdata) {
				return fmt.Errorf("%s answers %q for %s %s, want %q", pod, got, name, rrtype, rdata)
			}
		}
		return nil
	})
}

// queryRdata returns the sorted rdata of an authoritative answer.
func queryRdata(server, name string, rrtype uint16) ([]string, error) {
	reply, err := kube.Query(server, name, rrtype, kube.QueryTimeout)
	if err != nil {
		return nil, err
	}
	if reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError {
		return nil, fmt.Errorf("answered %s", dns.RcodeToString[reply.Rcode])
	}
	var rdata []string
	for _, rr := range slices.Concat(reply.Answer, reply.Ns) {
		if rr.Header().Rrtype == rrtype && strings.EqualFold(rr.Header().Name, name) {
			text := strings.TrimPrefix(rr.String(), rr.Header().String())
			if unknown, ok := rr.(*dns.RFC3597); ok { // Its text has class and type in numbers.
				text = fmt.Sprintf(`\# %d %s`, len(unknown.Rdata)/2, unknown.Rdata)
			}
			rdata = append(rdata, text)
		}
	}
	slices.Sort(rdata)
	return rdata, nil
}

// key reads one of the cluster's TSIG keys: the one that every server accepts at this moment.
func (f *fixture) key(role named.KeyRole) *wire.Key {
	f.Helper()
	secret := &corev1.Secret{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: named.KeyringSecretName("dns", role)}, secret); err != nil {
		f.Fatal(err)
	}
	key, err := named.KeyFromSecret(secret)
	if err != nil {
		f.Fatal(err)
	}
	return key
}
