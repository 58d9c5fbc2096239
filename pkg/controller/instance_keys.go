package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// findKeys keeps the keys of an instance without a cluster, sees that there are keys, and finds what the status tells of
// them.
func (p *instancePass) findKeys(ctx context.Context, owner cluster) error {
	settings := named.StandaloneKeys(&p.instance.Spec)
	if owner.Object != nil {
		settings = named.ClusterKeys(owner.spec)
	} else {
		again, _, err := ensureKeys(ctx, p.applier, p.deps,
			keyOwner{p.instance, instanceKind, p.instance.Namespace, settings, named.SelectorLabels(p.instance.Name)}, p.now())
		if err != nil {
			return err
		}
		p.lookAgain(again)
	}
	if _, err := p.keys.transfer(ctx, p.instance); err != nil {
		return err
	}
	if _, err := p.keys.update(ctx, p.instance); err != nil {
		return err
	}
	name, own := named.TransferKeySecretName(p.instance), true
	if p.instance.Spec.Role.Normalize() == v1beta1.RolePrimary {
		name, own = named.UpdateKeySecretName(p.instance), settings.Ref == nil
	}
	p.facts.KeyRotation = p.keys.last(client.ObjectKey{Namespace: p.instance.Namespace, Name: name}).Rotation(settings.Rotation, own)
	return nil
}
