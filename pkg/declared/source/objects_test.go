package source

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// object gives metadata whose age in seconds orders the objects of a test: a greater age is older.
func object(name string, age int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID("uid-" + name), Generation: 1,
		Labels:            map[string]string{"zone": "example.com"},
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, -age, 0, time.UTC)),
	}
}

func common(name string, ttl ...int64) v1beta1.RecordCommon {
	c := v1beta1.RecordCommon{Name: name}
	if len(ttl) > 0 {
		c.TTL = &ttl[0]
	}
	return c
}

func aRecord(object metav1.ObjectMeta, name string, addresses ...string) *v1beta1.ARecord {
	return &v1beta1.ARecord{ObjectMeta: object, Spec: v1beta1.ARecordSpec{RecordCommon: common(name), IPv4Addresses: addresses}}
}

func txtRecord(object metav1.ObjectMeta, name string, text ...string) *v1beta1.TXTRecord {
	return &v1beta1.TXTRecord{ObjectMeta: object, Spec: v1beta1.TXTRecordSpec{RecordCommon: common(name), Text: text}}
}

func cnameRecord(object metav1.ObjectMeta, name, target string) *v1beta1.CNAMERecord {
	return &v1beta1.CNAMERecord{ObjectMeta: object, Spec: v1beta1.CNAMERecordSpec{RecordCommon: common(name), Target: target}}
}

func nsRecord(object metav1.ObjectMeta, name, server string) *v1beta1.NSRecord {
	return &v1beta1.NSRecord{ObjectMeta: object, Spec: v1beta1.NSRecordSpec{RecordCommon: common(name), Nameserver: server}}
}

func dnsRecord(object metav1.ObjectMeta, name, rrtype string, data ...string) *v1beta1.DNSRecord {
	return &v1beta1.DNSRecord{ObjectMeta: object, Spec: v1beta1.DNSRecordSpec{RecordCommon: common(name), Type: rrtype, Data: data}}
}

func withTTL(r *v1beta1.ARecord, ttl int64) *v1beta1.ARecord {
	r.Spec.TTL = &ttl
	return r
}

// exampleZone has its name server outside, so that it declares nothing but one NS.
func exampleZone() *v1beta1.DNSZone {
	return &v1beta1.DNSZone{
		ObjectMeta: object("example-com", 1000),
		Spec: v1beta1.DNSZoneSpec{
			ZoneName:  "Example.com",
			SOARecord: v1beta1.SOARecord{PrimaryNS: "ns1.example.net.", AdminEmail: "admin@example.com"},
			RecordsFrom: []v1beta1.RecordSource{
				{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "example.com"}}},
			},
		},
	}
}

func endpoints(object metav1.ObjectMeta, all ...v1alpha1.Endpoint) *v1alpha1.DNSEndpoint {
	e := &v1alpha1.DNSEndpoint{ObjectMeta: object}
	for i := range all {
		e.Spec.Endpoints = append(e.Spec.Endpoints, &all[i])
	}
	return e
}

func endpoint(dnsName, recordType string, targets ...string) v1alpha1.Endpoint {
	return v1alpha1.Endpoint{DNSName: dnsName, RecordType: recordType, Targets: targets}
}

// plain is all that a zone says.
type plain struct {
	Name         string
	Ref          *Ref
	SOA          rrset.SOA
	RRsets       map[rrset.Key]RRset
	Declarations map[ID]Declaration
	Refused      int
	Elsewhere    int
}

func plainOf(z *Zone) plain {
	return plain{z.Name, z.Ref, z.SOA, maps.Collect(z.RRsets.All()), maps.Collect(z.Declarations.All()), z.Refused, z.Elsewhere}
}

func diffZones(a, b *Zone) string { return cmp.Diff(plainOf(a), plainOf(b), cmpopts.EquateEmpty()) }

// What has no namespace, as records of a zone file that is imported, has no slash before its name.
func TestObjectKey(t *testing.T) {
	for want, key := range map[string]ObjectKey{"ARecord dns/www": {"ARecord", "dns", "www"}, "ARecord www": {"ARecord", "", "www"}} {
		if got := key.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
