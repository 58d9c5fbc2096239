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
		lacking = lacking || pod.Serving.Reason == status.ReasonProgressing && !pod.Serving.Holds()
	}
	if !lacking || instance.Spec.Role.Normalize() == v1beta1.RolePrimary {
		return nil
	}
	all, err := inventory.Read(ctx, c.client, c.systemNamespace)
	if err != nil {
		return err
	}
	zone := zoneWithoutPrimary(zones, all)
	if zone == nil {
		return nil
	}
	for i := range pods {
		if serving := &pods[i].Serving; serving.Reason == status.ReasonProgressing {
			*serving = status.LoadingBecause(*serving, status.NoPrimaryReady(declaration.DNSName(zone)))
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

// keyReasons are the failures of a zone that are about the keys of its servers: what other servers lack, or the zone itself,
// is not the instance's failure.
var keyReasons = map[string]bool{"BadKey": true, "BadSignature": true}

// keyFailure says that servers of an instance do not accept our keys, as the controller found with one of its zones; the zero value if it
// found no such thing.
func keyFailure(instance *v1beta1.Bind9Instance, zones []*v1beta1.DNSZone) status.Verdict {
	for _, zone := range zones {
		if !keyReasons[zone.Status.FailureReason] {
			continue
		}
		for _, i := range zone.Status.Bind9Instances {
			if i.Namespace != instance.Namespace || i.Name != instance.Name || i.Status != v1beta1.ZoneFailed {
				continue
			}
			return status.KeysRefused(zone, instance.Namespace)
		}
	}
	return status.Verdict{}
}
