package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
)

// backendSource has the backends of the providers that are no DNS servers.
type backendSource interface {
	// Takes reports whether a provider has a backend.
	Takes(p *v1beta1.DNSProvider) bool
	Of(ctx context.Context, p *v1beta1.DNSProvider) (host.Backend, error)
	// Follow has changed called when somebody may have changed a zone with these providers, and no longer with others.
	Follow(zone client.ObjectKey, name string, in []*v1beta1.DNSProvider, changed func())
	// Followed returns the backend of a provider, which may be gone, at which a zone is followed; nil if it is not.
	Followed(zone, at client.ObjectKey) host.Backend
}

// byBackend returns the providers that have a backend without an SOA, and those that are DNS servers.
func (e edges) byBackend(providers []*v1beta1.DNSProvider) (backends, servers []*v1beta1.DNSProvider) {
	for _, p := range providers {
		if e.backends != nil && e.backends.Takes(p) {
			backends = append(backends, p)
		} else {
			servers = append(servers, p)
		}
	}
	return backends, servers
}

func (p zonePass) backendProviders() []*v1beta1.DNSProvider {
	providers, _ := p.byBackend(p.providers)
	return providers
}

// reconcileBackends brings the zone to those of its providers that are no DNS servers, and has what others change there looked at. The zone is
// followed before it is written: a connection at which it is followed outlives its provider, so what is written can be deleted.
func (p zonePass) reconcileBackends(ctx context.Context) []backend.Outcome {
	providers := p.backendProviders()
	outcomes := make([]backend.Outcome, len(providers))
	backends := make([]host.Backend, len(providers))
	for i, at := range providers {
		outcomes[i].Name = at.Name
		backends[i], outcomes[i].Err = p.usableBackend(ctx, at)
	}
	if p.backends != nil {
		p.backends.Follow(p.key(), p.dnsName(), providers, func() { p.zones.Enqueue(p.key()) })
	}
	want := p.state.content.Wanted()
	var wg sync.WaitGroup
	for i, at := range providers {
		if outcomes[i].Err == nil {
			wg.Go(func() {
				outcomes[i] = backend.Sync(ctx, backend.Named{Backend: backends[i], Name: at.Name, Review: p.review}, p.dnsName(), want, p.isPaused())
			})
		}
	}
	wg.Wait()
	return outcomes
}

// review has the zone's guard decide on the changes of one copy of the zone.
func (p zonePass) review(have plan.Content, lacking plan.Changes) (want plan.Content, other bool) {
	return p.state.content.Review(have, lacking, p.now())
}

// usableBackend returns the backend of a provider, or why the zone cannot be there.
func (p zonePass) usableBackend(ctx context.Context, at *v1beta1.DNSProvider) (host.Backend, error) {
	if problem := serving.ProviderProblem(at); problem != "" {
		return nil, errors.New(problem)
	}
	b, err := p.backends.Of(ctx, at)
	if p.signing.IsSigned() {
		err = host.ErrSignedHere
	}
	return b, err
}

// backendProblem says why the zone could not be brought to a provider that is no DNS server, and whether only a person can help.
func backendProblem(out backend.Outcome) (why, failure status.Verdict) {
	why = status.ProviderFailed(out.Name, out.Err)
	var e *host.Error
	if errors.As(out.Err, &e) && !e.Temporary {
		failure = status.False(e.Reason, why.Message)
	}
	return why, failure
}

// clearBackends deletes what is ours of the zone from providers that are no DNS servers, also from one that went before the zone. Where
// another zone of that name takes over, it has that deleted which is not its own.
func (e edges) clearBackends(ctx context.Context, s scope, name string) error {
	var errs []error
	for _, at := range s.providers {
		if e.isTakenOver(s, client.ObjectKeyFromObject(at)) {
			continue
		}
		b, err := e.backendOf(ctx, s, at)
		switch {
		case b == nil && err == nil && at.UID == "":
			log.FromContext(ctx).Info("what the zone may have at a provider that is gone stays there", "zone", name, "provider", at.Name)
		case b != nil:
			err = backend.Clear(ctx, backend.Named{Backend: b, Name: at.Name}, name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("DNSProvider %s: %w", at.Name, err))
		}
	}
	return errors.Join(errs...)
}

// isTakenOver reports whether another zone with the name of one that is going, which stays, is served at a provider.
func (e edges) isTakenOver(s scope, at client.ObjectKey) bool {
	provider := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	return slices.ContainsFunc(e.zones.Members.ZonesNamed(s.zone.Spec.ZoneName), func(o *v1beta1.DNSZone) bool {
		return membership.KeyOfZone(o) != s.key() && !v1beta1.IsGoing(o) && membership.RefersTo(o, provider) &&
			(s.fleet == nil || s.fleet.RefusalOf(o, e.zones.Members) == membership.Refusal{})
	})
}

// backendOf returns the backend of a provider, nil without an error if it has none. Of one that is gone, or whose Secrets are, it is that at
// which the zone is followed.
func (e edges) backendOf(ctx context.Context, s scope, at *v1beta1.DNSProvider) (b host.Backend, err error) {
	if e.backends != nil && e.backends.Takes(at) {
		b, err = e.backends.Of(ctx, at)
	}
	if b == nil && e.backends != nil {
		if b = e.backends.Followed(s.key(), client.ObjectKeyFromObject(at)); b != nil {
			err = nil
		}
	}
	return b, err
}
