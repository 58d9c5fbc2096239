package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// blameUpstream tells of pods of a secondary that lack zones, when there is a zone none of whose primaries is ready: it
// can be transferred from nowhere, and the fault is not with these pods.
func (p *instancePass) blameUpstream(ctx context.Context, zones []*v1beta1.DNSZone) error {
	lacking := false
	for _, pod := range p.facts.Pods {
		lacking = lacking || pod.Problem.Reason == status.ReasonProgressing && !pod.Problem.Holds()
	}
	if !lacking || p.instance.Spec.Role.Normalize() == v1beta1.RolePrimary {
		return nil
	}
	var list v1beta1.Bind9InstanceList
	if err := p.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	zone := orphaned(zones, pointers(list.Items))
	if zone == nil {
		return nil
	}
	for i := range p.facts.Pods {
		if problem := &p.facts.Pods[i].Problem; problem.Reason == status.ReasonProgressing {
			*problem = status.No(status.UpstreamUnreachable, fmt.Sprintf("%s: no primary of %s is ready", problem.Message, source.DNSName(zone)))
		}
	}
	return nil
}

// orphaned is the first zone that has primaries of which none has a ready pod.
func orphaned(zones []*v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) *v1beta1.DNSZone {
	for _, zone := range zones {
		primaries, ready := 0, int32(0)
		for _, i := range membership.InstancesOf(zone, instances) {
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
