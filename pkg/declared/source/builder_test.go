package source

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Names that get in each other's way: cuts below cuts, hosts of the zone and of delegations, wildcards, and bad ones.
var (
	crowded = []string{
		"@", "www", "sub", "a.sub", "b.a.sub", "ns.sub", "ns.a.sub", "x.y.sub", "*", "*.sub", "*.deep", "a.deep", "ns1", "ns2", "mail.deep", "a..b",
	}
	crowdedHosts = []string{"www", "ns1", "ns2", "ns.sub", "ns.a.sub", "mail.deep", "a.deep", "host.away", "ns.example.org.", "b..a"}
)

// change gives an object of one of a few names, as it was created, changed, recreated or marked for deletion.
func change(r *rand.Rand, step int) Object {
	o := object(fmt.Sprintf("o%d", r.IntN(14)), r.IntN(4))
	o.UID, o.Generation = types.UID(fmt.Sprintf("uid-%d", r.IntN(3))), int64(step)
	if r.IntN(8) == 0 {
		o.CreationTimestamp = metav1.Time{}
	}
	if r.IntN(10) == 0 {
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	name, host := oneOf(r, crowded), oneOf(r, crowdedHosts)
	common := v1beta1.RecordCommon{Name: name}
	if r.IntN(3) == 0 {
		ttl := int64(r.IntN(3)) * 100
		common.TTL = &ttl
	}
	switch r.IntN(14) {
	case 0, 1:
		return &v1beta1.ARecord{ObjectMeta: o, Spec: v1beta1.ARecordSpec{RecordCommon: common, IPv4Addresses: addressesFrom(r)}}
	case 2:
		return &v1beta1.AAAARecord{ObjectMeta: o, Spec: v1beta1.AAAARecordSpec{RecordCommon: common, IPv6Address: fmt.Sprintf("2001:db8::%d", r.IntN(3))}}
	case 3:
		return &v1beta1.CNAMERecord{ObjectMeta: o, Spec: v1beta1.CNAMERecordSpec{RecordCommon: common, Target: host}}
	case 4, 5:
		return &v1beta1.NSRecord{ObjectMeta: o, Spec: v1beta1.NSRecordSpec{RecordCommon: common, Nameserver: host}}
	case 6:
		return &v1beta1.TXTRecord{ObjectMeta: o, Spec: v1beta1.TXTRecordSpec{RecordCommon: common, Text: []string{host}}}
	case 7:
		return &v1beta1.MXRecord{ObjectMeta: o, Spec: v1beta1.MXRecordSpec{RecordCommon: common, MailServer: host}}
	case 8:
		return &v1beta1.SRVRecord{ObjectMeta: o, Spec: v1beta1.SRVRecordSpec{RecordCommon: common, Target: host}}
	case 9, 10:
		return &v1beta1.DNSRecord{ObjectMeta: o, Spec: randomTyped(r, common, host)}
	}
	e := &v1alpha1.DNSEndpoint{ObjectMeta: o}
	for range r.IntN(5) {
		e.Spec.Endpoints = append(e.Spec.Endpoints, randomEndpoint(r))
	}
	return e
}

// randomTyped gives data of types that exclude other data, and of others, spelled in several ways.
func randomTyped(r *rand.Rand, common v1beta1.RecordCommon, host string) v1beta1.DNSRecordSpec {
	if r.IntN(3) == 0 {
		common.Name, host = strings.ToUpper(common.Name), strings.ToUpper(host)
	}
	s := v1beta1.DNSRecordSpec{RecordCommon: common, Type: oneOf(r, []string{"DNAME", "DNAME", "DS", "DS", "NS", "CNAME", "HTTPS", "A"})}
	s.Data = []string{map[string]string{"DS": fmt.Sprintf("%d 13 9 AB", r.IntN(3)), "HTTPS": "1 " + host, "A": "192.0.2.1"}[s.Type]}
	if s.Data[0] == "" {
		s.Data[0] = host
	}
	return s
}

func randomEndpoint(r *rand.Rand) *v1alpha1.Endpoint {
	complete := func(name string) string {
		switch {
		case name == "@":
			return "example.com"
		case name[len(name)-1] == '.':
			return name
		}
		return name + ".example.com"
	}
	e := &v1alpha1.Endpoint{DNSName: complete(oneOf(r, crowded)), RecordTTL: int64(r.IntN(3)) * 100}
	target := func() string { return complete(oneOf(r, crowdedHosts)) }
	switch r.IntN(10) {
	case 0:
		return nil
	case 1, 2:
		e.RecordType, e.Targets = "A", addressesFrom(r)
	case 3:
		e.RecordType, e.Targets = "CNAME", []string{target()}
	case 4, 5:
		e.RecordType, e.Targets = "NS", []string{target(), target()}
	case 6:
		e.RecordType, e.Targets = "MX", []string{"10 " + target(), "20 " + target()}
	case 7:
		e.RecordType, e.Targets = "TXT", []string{target()}
	case 8:
		e.RecordType, e.Targets, e.DNSName = "A", []string{"192.0.2.1"}, oneOf(r, []string{"www.elsewhere.org", "taken.example.com"})
	case 9:
		e.RecordType = oneOf(r, []string{"PTR", "HINFO", "SRV"})
		e.Targets = []string{target()}
	}
	return e
}

// addressesFrom gives few addresses most of the time, and else so many that two such sets exceed the limit.
func addressesFrom(r *rand.Rand) []string {
	from, n := r.IntN(3), 1
	if r.IntN(4) == 0 {
		from, n = r.IntN(2)*60, 60
	}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("192.0.2.%d", from+i))
	}
	return all
}

func oneOf[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// crowdedZone has a name server inside itself with an address, one without, and one outside.
func crowdedZone() *v1beta1.DNSZone {
	zone := exampleZone()
	zone.Spec.SOARecord.PrimaryNS = "ns1.example.com."
	zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns.sub.example.com.", IPv4Address: "192.0.2.53"}, {Hostname: "ns.example.net."}}
	return zone
}

var crowdedOptions = Options{
	Servers: []Server{
		{Service: "dns/one", Exposed: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.99"), netip.MustParseAddr("2001:db8::99")}},
		{Service: "dns/two", Exposed: true},
	},
	Owns: func(_ metav1.Object, dnsName string) bool { return dnsName != "taken.example.com" },
}

// A builder that follows changes gives what is built of the objects from scratch, and finds exactly what has changed.
func TestBuilderIsBuild(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 9))
		zone := exampleZone()
		if seed%2 == 0 {
			zone = crowdedZone()
		}
		b, err := NewBuilder(zone, crowdedOptions)
		if err != nil {
			t.Fatal(err)
		}
		objects := map[ObjectKey]Object{}
		var last *Zone
		var before string
		for step := range 50 {
			for range 1 + r.IntN(3)*r.IntN(3) {
				o := change(r, step)
				if r.IntN(5) == 0 {
					delete(objects, KeyOf(o))
					b.Remove(KeyOf(o))
					continue
				}
				objects[KeyOf(o)] = o
				b.Set(o)
			}
			next := b.Zone()
			want, err := Build(zone, slices.Collect(maps.Values(objects)), crowdedOptions)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffZones(want, next); diff != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, diff)
			}
			checkChanges(t, next, last)
			if last != nil && before != fmt.Sprint(plainOf(last)) {
				t.Fatalf("seed %d, step %d: an older zone changed", seed, step)
			}
			if b.Zone() != next {
				t.Fatalf("seed %d, step %d: nothing changed, and the zone is another", seed, step)
			}
			last, before = next, fmt.Sprint(plainOf(next))
			checkIndex(t, b)
		}
		checkServable(t, last)
	}
}

// checkChanges compares what two zones say of their difference with the difference itself.
func checkChanges(t *testing.T, z, old *Zone) {
	t.Helper()
	names, objects := map[string]bool{}, map[ObjectKey]bool{}
	older := &Zone{}
	if old != nil {
		older = old
	}
	for _, pair := range [][2]*Zone{{z, older}, {older, z}} {
		for key, s := range pair[0].RRsets.All() {
			if o, ok := pair[1].Get(key); !ok || !o.Equal(s.RRset) {
				names[key.Name] = true
			}
		}
		for id, d := range pair[0].Declarations.All() {
			if o, ok := pair[1].Declarations.Get(id); !ok || !o.Equal(d) {
				objects[id.ObjectKey] = true
			}
		}
	}
	less := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(slices.Collect(maps.Keys(names)), slices.Collect(z.ChangedNames(old)), less, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("changed names: %s", diff)
	}
	byKey := cmpopts.SortSlices(func(a, b ObjectKey) bool { return a.String() < b.String() })
	if diff := cmp.Diff(slices.Collect(maps.Keys(objects)), slices.Collect(z.ChangedObjects(old)), byKey, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("changed objects: %s", diff)
	}
}

// checkIndex proves that the index holds what its objects need and no more: nothing is left of what is gone.
func checkIndex(t *testing.T, b *Builder) {
	t.Helper()
	fresh := *b
	fresh.buildFresh(len(b.objects), maps.Values(b.objects))
	for name, n := range b.tree.byName {
		m, ok := fresh.tree.byName[name]
		if !ok {
			t.Errorf("the index still has %s: %d items, %d users", name, len(n.items), len(n.users))
			continue
		}
		if len(n.items) != len(m.items) || len(n.users) != len(m.users) || n.cuts != m.cuts || n.glue != m.glue {
			t.Errorf("%s: %d items, %d users, %d cuts, glue %d; afresh: %d, %d, %d, %d",
				name, len(n.items), len(n.users), n.cuts, n.glue, len(m.items), len(m.users), m.cuts, m.glue)
		}
	}
	if len(b.tree.byName) != len(fresh.tree.byName) || len(b.tree.hosts) != len(fresh.tree.hosts) || b.tree.cuts != fresh.tree.cuts {
		t.Errorf("%d names, %d hosts, %d cuts; afresh: %d, %d, %d", len(b.tree.byName), len(b.tree.hosts), b.tree.cuts,
			len(fresh.tree.byName), len(fresh.tree.hosts), fresh.tree.cuts)
	}
}

// When most of a zone changes at once it is made afresh, and goes on from there.
func TestBuilderManyChanges(t *testing.T) {
	const size = 4000
	b, err := NewBuilder(crowdedZone(), crowdedOptions)
	if err != nil {
		t.Fatal(err)
	}
	objects := largeZone(size)
	for _, o := range objects {
		b.Set(o)
	}
	last := b.Zone()
	for i := range objects {
		o := object(fmt.Sprintf("record-%d", i), i%1000)
		switch {
		case i%10 > 1 && i > size/4:
			objects[i] = aRecord(o, fmt.Sprintf("host-%d", i), "192.0.2.2")
		case i%2 == 0:
			b.Remove(KeyOf(objects[i]))
			objects[i] = nil
			continue
		}
		b.Set(objects[i])
	}
	want, err := Build(crowdedZone(), objects, crowdedOptions)
	if err != nil {
		t.Fatal(err)
	}
	next := b.Zone()
	if diff := diffZones(want, next); diff != "" {
		t.Fatal(diff)
	}
	checkChanges(t, next, last)
	checkIndex(t, b)
	b.Set(aRecord(object("one", 1), "one-more", "192.0.2.1"))
	if changed := slices.Collect(b.Zone().ChangedNames(next)); len(changed) != 1 || changed[0] != "one-more.example.com." {
		t.Errorf("after one change: %v", changed)
	}
}

func TestZoneAtAndOf(t *testing.T) {
	e := endpoints(object("many", 1), endpoint("a.example.com", "A", "192.0.2.1"), endpoint("b.example.org", "A", "192.0.2.1"),
		endpoint("a.example.com", "TXT", "x"), endpoint("b.example.com", "A", "x"))
	z, err := Build(exampleZone(), []Object{e, aRecord(object("other", 1), "c", "192.0.2.1")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for s := range z.At("a.example.com.") {
		at = append(at, s.String())
	}
	slices.Sort(at)
	if diff := cmp.Diff([]string{"a.example.com. 3600 A 192.0.2.1", `a.example.com. 3600 TXT "x"`}, at); diff != "" {
		t.Error(diff)
	}
	var of []int
	for id, d := range z.Of(KeyOf(e)) {
		if of = append(of, id.Index); d.Ref.Name != "many" || id.ObjectKey != KeyOf(e) {
			t.Errorf("%v: %v", id, d)
		}
	}
	if diff := cmp.Diff([]int{0, 2, 3}, of); diff != "" || z.Refused != 1 {
		t.Errorf("%d refused; %s", z.Refused, diff)
	}
}

// largeZone gives n records such as large zones have.
func largeZone(n int) []Object {
	objects := make([]Object, n)
	for i := range objects {
		o, name := object(fmt.Sprintf("record-%d", i), i%1000), fmt.Sprintf("host-%d", i)
		switch i % 10 {
		case 0:
			objects[i] = cnameRecord(o, name, "www")
		case 1:
			objects[i] = txtRecord(o, name, "v=spf1 -all")
		default:
			objects[i] = aRecord(o, name, "192.0.2.1")
		}
	}
	return objects
}

func BenchmarkBuild(b *testing.B) {
	objects := largeZone(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(exampleZone(), objects, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuilder changes one of 100,000 records: of its mean and its slowest cases the latter matter.
func BenchmarkBuilder(b *testing.B) {
	const size = 100_000
	for name, with := range map[string][]Object{
		"flat": nil,
		"with delegations, wildcards and mail": {
			nsRecord(object("cut", 1), "sub", "ns.sub"), aRecord(object("glue", 1), "ns.sub", "192.0.2.1"),
			aRecord(object("wild", 1), "*", "192.0.2.1"), nsRecord(object("apex", 1), "@", "host-2"),
			&v1beta1.MXRecord{ObjectMeta: object("mail", 1), Spec: v1beta1.MXRecordSpec{RecordCommon: common("@"), MailServer: "host-3"}},
		},
	} {
		b.Run(name, func(b *testing.B) {
			builder, err := NewBuilder(exampleZone(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			objects := slices.Concat(largeZone(size), with)
			before := heapInUse()
			for _, o := range objects {
				builder.Set(o)
			}
			last := builder.Zone()
			perObject := (heapInUse() - before) / uint64(len(objects))
			b.ReportAllocs()
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				j := i * 7919 % size
				o := object(fmt.Sprintf("record-%d", j), 5)
				o.Generation = int64(i)
				start := time.Now()
				builder.Set(aRecord(o, fmt.Sprintf("host-%d", j), fmt.Sprintf("192.0.2.%d", i%250)))
				next := builder.Zone()
				changed := len(slices.Collect(next.ChangedNames(last)))
				took = append(took, time.Since(start))
				if last = next; changed > 2 {
					b.Fatalf("%d names changed", changed)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(perObject), "B/object")
		})
	}
}

// heapInUse is what stays after the garbage is gone.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
