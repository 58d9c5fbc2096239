package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const signerDigest = "9F2A000000000000000000000000000000000000000000000000000000000001"

func delegating(ttl int64) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "z"}}
	z.Spec.ZoneName, z.Spec.TTL = "example.test", &ttl
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.example.net.", AdminEmail: "h@example.test"}
	return z
}

// delegates is an NSRecord of a namespace at a name of the zone.
func delegates(namespace, name string) *v1beta1.NSRecord {
	return nsRecord(metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}, name, "ns1.example.net.")
}

func declaredDS(digest string) *v1beta1.DNSRecord {
	return dnsRecord(metav1.ObjectMeta{Namespace: "dns", Name: "ds"}, "shop", "DS", "4711 13 2 "+digest)
}

// TestSignersOfDelegations: the DS records of a signed zone below stand beside the NS records that delegate to it, and nowhere else.
func TestSignersOfDelegations(t *testing.T) {
	signer, ok := NewSigner("shop.example.test.", []string{"1 13 2 " + signerDigest})
	if !ok {
		t.Fatal("no signer")
	}
	own := "4711 13 2 " + strings.Repeat("AB", 32)
	for name, c := range map[string]struct {
		objects []Object
		want    string
	}{
		"no delegation":                     {nil, ""},
		"a delegation":                      {[]Object{delegates("dns", "shop")}, "1 13 2 " + signerDigest},
		"another delegation":                {[]Object{delegates("dns", "bank")}, ""},
		"a declared DS wins":                {[]Object{delegates("dns", "shop"), declaredDS(strings.Repeat("AB", 32))}, own},
		"a record of another namespace":     {[]Object{delegates("dns", "shop"), delegates("shop", "shop")}, "1 13 2 " + signerDigest},
		"only records of another namespace": {[]Object{delegates("shop", "shop")}, ""},
	} {
		z, err := Build(delegating(60), c.objects, Options{Signers: []Signer{signer}})
		if err != nil {
			t.Fatal(err)
		}
		set, found := z.RRsets.Get(rrset.Key{Name: "shop.example.test.", Type: dns.TypeDS})
		if got := strings.Join(set.Rdata, ","); !strings.EqualFold(got, c.want) {
			t.Errorf("%s: DS %q, want %q", name, got, c.want)
		}
		if found && (set.TTL == 0 || len(set.Owners) != len(set.Rdata)) {
			t.Errorf("%s: %+v", name, set)
		}
	}
}

// TestSignersFollowTheDelegation: what was decided before is decided anew when a delegation comes or goes, or a DS is declared.
func TestSignersFollowTheDelegation(t *testing.T) {
	signer, _ := NewSigner("shop.example.test.", []string{"1 13 2 " + signerDigest})
	b, err := NewBuilder(delegating(60), Options{Signers: []Signer{signer}})
	if err != nil {
		t.Fatal(err)
	}
	has := func(what string, want int) {
		t.Helper()
		set, _ := b.Zone().RRsets.Get(rrset.Key{Name: "shop.example.test.", Type: dns.TypeDS})
		if len(set.Rdata) != want || want == 1 && strings.HasPrefix(set.Rdata[0], "4711") != (what == "declared") {
			t.Errorf("%s: DS %v", what, set.Rdata)
		}
	}
	has("nothing", 0)
	ns, ds := delegates("dns", "shop"), declaredDS(strings.Repeat("AB", 32))
	b.Set(ns)
	has("delegated", 1)
	b.Set(ds)
	has("declared", 1)
	b.Remove(KeyOf(ds))
	has("no more declared", 1)
	b.Remove(KeyOf(ns))
	has("no more delegated", 0)
}

// TestNewSigner takes what can be a DS record, and not more than a delegation may have.
func TestNewSigner(t *testing.T) {
	for name, record := range map[string]string{
		"a short digest": "1 13 2 9F2A", "SHA-1": "1 13 1 " + signerDigest[:40], "no digest": "1 13 2", "a delete": "0 0 0 00", "a type of no length": "1 13 7 ",
		"no tag": "x 13 2 " + signerDigest, "a large tag": "65536 13 2 " + signerDigest, "more": "1 13 2 " + signerDigest + " 00", "no hex": "1 13 2 " + strings.Repeat("xy", 32),
		"SHA-384 of another length": "1 13 4 " + signerDigest,
	} {
		if s, ok := NewSigner("a.test.", []string{record}); ok {
			t.Errorf("%s: %v", name, s)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("%d 13 2 %s", 100+i, signerDigest))
	}
	s, ok := NewSigner("a.test.", append(many, many...))
	if !ok || len(s.Rdata) != MaxSigners || !slices.IsSorted(s.Rdata) {
		t.Errorf("%d: %v", len(s.Rdata), s)
	}
}
