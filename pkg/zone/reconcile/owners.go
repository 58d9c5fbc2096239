package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Where values have owners, a zone that leaves a server takes its own with it. The hosts that it had are remembered with their keys, so that this
// is possible also when the DNSProvider and its Secrets go with the zone.

// ownedHosts are the hosts on which a zone may have values of its own, by ID.
type ownedHosts map[types.NamespacedName]host.Host

// noteOwned remembers the hosts of a pass on which the zone may have values of its own.
func (s *zoneState) noteOwned(hosts []host.Host) {
	for _, h := range hosts {
		if at := h.At(); at.Owner != "" && at.Role == observe.Primary && at.Addr.IsValid() {
			if s.owned == nil {
				s.owned = ownedHosts{}
			}
			s.owned[at.ID] = h
		}
	}
}

// leaveFormerHosts deletes what the zone has on servers of providers that it does not name any more.
func (p zonePass) leaveFormerHosts(ctx context.Context) error {
	if p.isPaused() {
		return nil
	}
	var errs []error
	for id, h := range p.state.owned {
		isNamed := func(provider *v1beta1.DNSProvider) bool { return provider.Name == h.At().Provider }
		if slices.ContainsFunc(p.providers, isNamed) {
			continue
		}
		err := h.Delete(ctx)
		if errs = append(errs, err); err == nil {
			delete(p.state.owned, id)
		}
	}
	return errors.Join(errs...)
}

// hostsToClear returns the hosts from which a zone is to be deleted. Where values have owners, another zone of that name which has the same one
// deletes what is not its own.
func (r *reconciler) hostsToClear(s scope, state *zoneState) []host.Host {
	hosts := r.hostsOf(s, state)
	former := maps.Clone(state.owned)
	for _, h := range hosts {
		if h.At().Addr.IsValid() {
			delete(former, h.At().ID)
		}
	}
	return slices.DeleteFunc(slices.AppendSeq(hosts, maps.Values(former)), func(h host.Host) bool {
		at := h.At()
		return at.Owner != "" && r.isTakenOver(s.zone, &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Provider}})
	})
}
