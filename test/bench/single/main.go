// Command single measures how long one changed record takes until every server of its zone serves it, from the answer of
// the API server on. The reference, in the same run and on the same servers, is a bare UPDATE with the NOTIFY and IXFR
// that follow from it: what BIND itself needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// rest is how long nothing happens before each change.
const rest = 300 * time.Millisecond

const (
	namespace = "bench-single"
	zoneName  = "bench.example"
	apex      = zoneName + "."
)

func main() {
	records := flag.Int("records", 1000, "records in the zone, besides the one that changes")
	changes := flag.Int("changes", 50, "changes to measure, each way")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(context.Background(), *records, *changes); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, records, changes int) error {
	c, err := connect()
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Create(ctx, ns); err != nil {
		return fmt.Errorf("making the namespace (is it left from an interrupted run?): %w", err)
	}
	defer func() { _ = c.Delete(context.WithoutCancel(ctx), ns) }()
	fmt.Printf("a zone of %d records on 1 primary and 2 secondaries\n", records)
	b := &bench{client: c}
	if err := b.setUp(ctx, records); err != nil {
		return err
	}
	var ours, reference []time.Duration
	for i := range changes {
		// In turn, so that whatever else the machine does weighs on both, and each on a zone at rest.
		time.Sleep(rest)
		d, err := b.throughLockstep(ctx, i)
		if err != nil {
			return err
		}
		ours = append(ours, d)
		time.Sleep(rest)
		if d, err = b.bare(ctx, i); err != nil {
			return err
		}
		reference = append(reference, d)
	}
	show("through Lockstep", ours)
	show("bare UPDATE", reference)
	fmt.Printf("RESULT single ratio=%.2f ours=%.1f ms reference=%.1f ms (median of %d bare UPDATEs until all three servers answer)\n",
		float64(median(ours))/float64(median(reference)), ms(median(ours)), ms(median(reference)), changes)
	return nil
}

func connect() (client.Client, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

type bench struct {
	client  client.Client
	servers []netip.AddrPort
	primary netip.AddrPort
	key     *wire.Key
	record  *v1beta1.ARecord
}

// setUp declares fleet, zone and records, and waits until they are programmed.
func (b *bench) setUp(ctx context.Context, records int) error {
	one, two := int32(1), int32(2)
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dns"}}
	cluster.Spec.Primary, cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: &one}, &v1beta1.RoleConfig{Replicas: &two}
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"}}
	zone.Spec.ZoneName, zone.Spec.ClusterRef = zoneName, "dns"
	zone.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + apex, AdminEmail: "hostmaster." + apex}
	zone.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"bench": "single"}}}}
	b.record = aRecord("changing", "192.0.2.1")
	for _, o := range []client.Object{cluster, zone, b.record} {
		if err := b.client.Create(ctx, o); err != nil {
			return err
		}
	}
	for i := range records {
		if err := b.client.Create(ctx, aRecord(fmt.Sprintf("host-%d", i), fmt.Sprintf("10.0.%d.%d", i/250%250, i%250))); err != nil {
			return err
		}
	}
	if err := within(ctx, 5*time.Minute, func() error {
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(zone.Status.Conditions, "Ready")
		if int(zone.Status.RecordsCount) != records+1 || ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("the zone has %d records: %+v", zone.Status.RecordsCount, ready)
		}
		return nil
	}); err != nil {
		return err
	}
	return b.find(ctx)
}

// find looks up the servers and the update key.
func (b *bench) find(ctx context.Context) error {
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		b.servers = append(b.servers, netip.AddrPortFrom(address, named.Port))
		if pod.Labels[v1beta1.RoleLabel] == string(v1beta1.RolePrimary) {
			b.primary = b.servers[len(b.servers)-1]
		}
	}
	secret := &corev1.Secret{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: named.KeySecretName("dns", named.KeyUpdate)}, secret); err != nil {
		return err
	}
	var err error
	b.key, err = named.KeyFromSecret(secret)
	return err
}

func aRecord(name, address string) *v1beta1.ARecord {
	r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"bench": "single"}}}
	r.Spec.Name, r.Spec.IPv4Addresses = name, []string{address}
	return r
}

// throughLockstep changes the object and measures from the API server's answer on.
func (b *bench) throughLockstep(ctx context.Context, i int) (time.Duration, error) {
	address := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
	patch := fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address)
	if err := b.client.Patch(ctx, b.record, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return 0, err
	}
	return b.until(ctx, "changing."+apex, address)
}

// bare changes another name on the primary directly.
func (b *bench) bare(ctx context.Context, i int) (time.Duration, error) {
	reply, err := wire.Query(ctx, b.primary, apex, dns.TypeSOA)
	if err != nil {
		return 0, err
	}
	have := wire.FromSOA(reply.Msg.Answer[0].(*dns.SOA))
	want := have
	want.Serial = rrset.AddSerial(have.Serial, 1)
	address := fmt.Sprintf("10.2.%d.%d", i/250, i%250+1)
	set := rrset.New(rrset.Key{Name: fmt.Sprintf("bare-%d.%s", i, apex), Type: dns.TypeA}, 300, address)
	provider := rfc2136.New(rfc2136.Options{})
	defer provider.Close()
	began := time.Now()
	if _, err := provider.Apply(ctx, rfc2136.Target{Server: b.primary, Zone: apex, Key: b.key}, plan.Changes{Create: []rrset.RRset{set}}, have, want); err != nil {
		return 0, err
	}
	_, err = b.until(ctx, set.Name, address)
	return time.Since(began), err
}

// until asks all servers, again and again, until the last of them answers with the address.
func (b *bench) until(ctx context.Context, name, address string) (time.Duration, error) {
	began := time.Now()
	done := make(chan error, len(b.servers))
	for _, server := range b.servers {
		go func() {
			done <- within(ctx, 30*time.Second, func() error {
				reply, err := wire.Query(ctx, server, name, dns.TypeA)
				if err != nil {
					return err
				}
				if len(reply.Msg.Answer) != 1 || reply.Msg.Answer[0].(*dns.A).A.String() != address {
					return fmt.Errorf("%s answers %v for %s, want %s", server, reply.Msg.Answer, name, address)
				}
				return nil
			})
		}()
	}
	var errs []error
	for range b.servers {
		errs = append(errs, <-done)
	}
	return time.Since(began), errors.Join(errs...)
}

func within(ctx context.Context, limit time.Duration, check func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func show(what string, all []time.Duration) {
	sorted := slices.Sorted(slices.Values(all))
	fmt.Fprintf(os.Stdout, "%-17s median %.1f ms, 95th percentile %.1f ms, worst %.1f ms\n",
		what, ms(median(all)), ms(sorted[len(sorted)*95/100]), ms(sorted[len(sorted)-1]))
}

func median(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
