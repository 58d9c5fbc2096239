package instance

import (
	"context"
	"errors"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// ensureSigningKeys makes a Secret for the keys of each zone that the instance signs. A sidecar signs no zone whose Secret it
// cannot use, and the controller asks it again.
func (w *workloads) ensureSigningKeys(ctx context.Context, workload *named.Workload) error {
	instance := workload.Instance
	if instance.Spec.Role.Normalize() != v1beta1.RolePrimary {
		return nil
	}
	zones, err := inventory.ListZones(ctx, w.client)
	if err != nil {
		return err
	}
	all, err := inventory.Read(ctx, w.client, w.SystemNamespace)
	if err != nil {
		return err
	}
	byDefault := named.SigningPolicy(named.MergeOptions(workload.Cluster.Global, instance.Spec.Config)) != clause.PolicyNone
	var errs []error
	for _, zone := range zones {
		maySign := byDefault || zone.Spec.DNSSECPolicy != "" || zone.Status.DNSSEC != nil
		if !maySign || v1beta1.IsGoing(zone) || !all.Serves(instance, zone) || membership.IsRefused(zone) {
			continue
		}
		signing, err := dnssec.SigningOf(ctx, w.client, zone, all.InstancesOf(zone), w.SystemNamespace)
		if err == nil && signing.Signer != nil && signing.Signer.UID == instance.UID {
			err = signing.EnsureKeySecret(ctx, w.client, w.Children, zone)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
