package rig

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// zoneLabel on a record names the DNSZone that selects it.
const zoneLabel = "bench-zone"

// Zone is a DNSZone on the rig's fleet, not created yet, which selects the records that [Labels] are on.
func (r *Rig) Zone(object, zone string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: r.Meta(object, nil)}
	z.Spec.ZoneName, z.Spec.ClusterRef = zone, clusterName
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + zone + ".", AdminEmail: "hostmaster." + zone + "."}
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: Labels(object)}}}
	return z
}

// Labels are those of the records of a DNSZone.
func Labels(zoneObject string) map[string]string { return map[string]string{zoneLabel: zoneObject} }

// MakeZone creates a zone and waits until every server serves it.
func (r *Rig) MakeZone(ctx context.Context, object, zone string) error {
	if err := r.Client.Create(ctx, r.Zone(object, zone)); err != nil {
		return err
	}
	return Within(ctx, time.Minute, 10*time.Millisecond, func() error {
		for _, server := range r.Servers {
			if _, err := r.soa(ctx, server, zone+"."); err != nil {
				return err
			}
		}
		return nil
	})
}

// SOA asks the primary for a zone's SOA.
func (r *Rig) SOA(ctx context.Context, apex string) (rrset.SOA, error) {
	return r.soa(ctx, r.Primary, apex)
}
