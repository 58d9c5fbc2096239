package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
	"github.com/lockstep-dns/lockstep/test/coredns/servers"
)

// BenchmarkProvider is a pass that brings 10,000 new RRsets to etcd, the look before and the one after it included, beside bare
// transactions, one after the other, that write the same values.
func BenchmarkProvider(b *testing.B) {
	const records = 10_000
	e := servers.StartEtcd(b, servers.EtcdOptions{})
	to := backend.Named{Backend: coredns.New(coredns.Options{Endpoints: e.Endpoints, Owner: "team/corp"}), Name: "corp"}
	b.Cleanup(func() { _ = to.Close() })
	var ours, reference []time.Duration
	for i := range 5 {
		zone := fmt.Sprintf("b%d.test.", i)
		ours = append(ours, timeOfPass(b, to, zone, records))
		reference = append(reference, timeOfBare(b, e, zone))
	}
	slices.Sort(ours)
	slices.Sort(reference)
	ratio := ours[2].Seconds() / reference[2].Seconds()
	fmt.Printf("RESULT provider-coredns ratio=%.2f ours=%.2f s reference=%.2f s (%d RRsets by bare transactions of 128 values; medians of 5)\n",
		ratio, ours[2].Seconds(), reference[2].Seconds(), records)
	b.ReportMetric(ratio, "ratio")
}

func timeOfPass(b *testing.B, to backend.Named, zone string, records int) time.Duration {
	b.Helper()
	declared := &v1beta1.DNSZone{}
	declared.Spec.ZoneName, declared.Spec.NameServers = strings.TrimSuffix(zone, "."), []v1beta1.NameServer{{Hostname: "ns1.elsewhere.test."}}
	declared.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.elsewhere.test.", AdminEmail: "hostmaster.elsewhere.test.", Refresh: 3600, Retry: 600, Expire: 86400}
	builder, err := source.NewBuilder(declared, source.Options{})
	if err != nil {
		b.Fatal(err)
	}
	sync := func() backend.Outcome { return backend.Sync(b.Context(), to, zone, builder.Zone(), false) }
	if out := sync(); out.Err != nil {
		b.Fatal(out.Err)
	}
	for n := range records {
		a := &v1beta1.ARecord{}
		a.Name, a.Spec.Name = fmt.Sprintf("r%06d", n), fmt.Sprintf("r%06d", n)
		a.Spec.IPv4Addresses = []string{"192.0.2.2"}
		builder.Set(a)
	}
	began := time.Now()
	out := sync()
	took := time.Since(began)
	if out.Err != nil || len(out.Unprogrammed) > 0 || out.Applied.Len() != records {
		b.Fatalf("%v, %d unprogrammed, %d changes", out.Err, len(out.Unprogrammed), out.Applied.Len())
	}
	return took
}

func timeOfBare(b *testing.B, e *servers.Etcd, zone string) time.Duration {
	b.Helper()
	reply, err := e.Client.Get(b.Context(), pathOf(zone), clientv3.WithPrefix())
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for some := range slices.Chunk(reply.Kvs, 128) {
		var ops []clientv3.Op
		for _, kv := range some {
			ops = append(ops, clientv3.OpPut("/bare"+string(kv.Key), string(kv.Value)))
		}
		if _, err := e.Client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}
