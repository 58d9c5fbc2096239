package podcheck

import (
	"context"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// explainByUpstream changes the problem of a secondary's pods that lack zones, when there is a zone none of whose primaries
// is ready: it can be transferred from nowhere, and the fault is not with these pods.
func (c *Checker) explainByUpstream(ctx context.Context, instance *v1beta1.Bind9Instance, zones []*v1beta1.DNSZone, pods []status.PodFacts) error {
	lacking := false
	for _, pod := range pods {
		lacking = lacking || pod.Problem.Reason == status.ReasonProgressing && !pod.Problem.Holds()
	}
	if !lacking || instance.Spec.Role.Normalize() == v1beta1.RolePrimary {
		return nil
	}
	all, err := inventory.Read(ctx, c.client, c.home)
	if err != nil {
		return err
	}
	zone := zoneWithoutPrimary(zones, all)
	if zone == nil {
		return nil
	}
	for i := range pods {
		if problem := &pods[i].Problem; problem.Reason == status.ReasonProgressing {
			*problem = status.LoadingBecause(*problem, status.NoPrimaryReady(declaration.DNSName(zone)))
		}
	}
	return nil
}

// zoneWithoutPrimary is the first zone that has primaries of which none has a ready pod.
func zoneWithoutPrimary(zones []*v1beta1.DNSZone, f *membership.Fleet) *v1beta1.DNSZone {
	for _, zone := range zones {
		primaries, ready := 0, int32(0)
		for _, i := range f.InstancesOf(zone) {
			if i.Spec.Role.Normalize() == v1beta1.RolePrimary {
				primaries, ready = primaries+1, ready+i.Status.ReadyReplicas
			}
		}
		if primaries > 0 && ready == 0 && membership.Servable(zone) {
			return zone
		}
	}
	return nil
}
