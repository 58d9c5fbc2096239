package rig

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// zoneLabel on a record names the DNSZone that selects it.
const zoneLabel = "bench-zone"

// NewZone returns a DNSZone on the rig's fleet, not created yet, which selects the records that [Labels] are on.
func (r *Rig) NewZone(object, zone string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: r.ObjectMeta(object, nil)}
	z.Spec.ZoneName, z.Spec.ClusterRef = zone, clusterName
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + zone + ".", AdminEmail: "hostmaster." + zone + "."}
	z.Spec.Guard = &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Percent: new(int32(100))}} // Benchmarks delete all records of a zone.
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: ZoneLabels(object)}}}
	return z
}

// ZoneLabels returns the labels of the records of a DNSZone.
func ZoneLabels(zoneObject string) map[string]string { return map[string]string{zoneLabel: zoneObject} }

// CreateZone creates a zone and waits until every server serves it.
func (r *Rig) CreateZone(ctx context.Context, object, zone string) error {
	if err := r.Client.Create(ctx, r.NewZone(object, zone)); err != nil {
		return err
	}
	return PollUntil(ctx, time.Minute, 10*time.Millisecond, func() error {
		for _, server := range r.Servers {
			if _, err := r.querySOA(ctx, server, zone+"."); err != nil {
				return err
			}
		}
		return nil
	})
}

// PrimarySOA asks the primary for a zone's SOA.
func (r *Rig) PrimarySOA(ctx context.Context, apex string) (rrset.SOA, error) {
	return r.querySOA(ctx, r.Primary, apex)
}
