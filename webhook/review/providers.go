package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// providerReviewer judges DNSProviders by themselves: what the controller would report without asking their servers. No Secret is read.
type providerReviewer struct {
	objects Objects
}

func (r providerReviewer) review(ctx context.Context, provider, _ *v1beta1.DNSProvider) (Result, error) {
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return Result{}, err
	}
	warnings := ownWarnings(provider, all)
	if len(warnings) > 0 {
		if live := r.objects.liveFleet(ctx); live != nil {
			warnings = ownWarnings(provider, live)
		}
	}
	return Result{Warnings: warnings}, nil
}

// ownWarnings finds why no zone can be on a provider, servers that it has twice, and that it is one of too many.
func ownWarnings(provider *v1beta1.DNSProvider, all *membership.Fleet) (warnings []string) {
	provider = provider.DeepCopy()
	if provider.UID == "" {
		provider.UID = "new" // Without one it would stand for a provider that does not exist.
	}
	if provider.CreationTimestamp.IsZero() {
		provider.CreationTimestamp = metav1.Now()
	}
	if problem := serving.ProviderProblem(provider); problem != "" {
		return []string{problem}
	}
	servers := serving.AddProviders(nil, []*v1beta1.DNSProvider{provider})
	if c := provider.Spec.CoreDNS; c != nil && c.Servers.Service == nil && len(c.Servers.Addresses) == 0 {
		warnings = append(warnings, servers[0].Message)
	}
	primaries, secondaries := serving.DeclaredServers(provider)
	named := map[string]bool{}
	for _, s := range slices.Concat(primaries, secondaries) {
		address := strings.ToLower(serving.ServerAddress(s))
		if named[address] {
			warnings = append(warnings, fmt.Sprintf("spec has the server %s twice: it is used once", address))
		}
		named[address] = true
	}
	neighbors := append(all.GuestsBeside(provider), provider)
	if provider.Spec.Secondaries != nil && !slices.Contains(membership.AdmitGuests(neighbors), provider) {
		warnings = append(warnings, fmt.Sprintf("spec.secondaries: this is one of %d DNSProviders with secondaries in namespace %s, and primaries let those of %d of a namespace transfer zones, the oldest: put the servers into an older provider, or delete one that is not needed",
			len(neighbors), provider.Namespace, membership.GuestsOfNamespace))
	}
	return warnings
}

// warnProviders warns about DNSProviders that a zone names and that it cannot be brought to.
func (r zoneReviewer) warnProviders(ctx context.Context, zone *v1beta1.DNSZone, all *membership.Fleet) []string {
	warnings := providerWarnings(zone, all)
	if len(warnings) > 0 {
		if live := r.objects.liveFleet(ctx); live != nil {
			return providerWarnings(zone, live)
		}
	}
	return warnings
}

// providerWarnings finds providers that do not exist, are not supported, or are not ready by their own status, and servers that
// two of them have. No Secret is read: what is wrong with a key is what the controller has written into the status.
func providerWarnings(zone *v1beta1.DNSZone, all *membership.Fleet) (warnings []string) {
	warn := func(format string, args ...any) {
		warnings = append(warnings, "spec.providerRefs: "+fmt.Sprintf(format, args...))
	}
	owners := map[string]string{} // of servers: the first provider that has one
	for _, p := range all.ProvidersOf(zone) {
		if p.UID == "" {
			warn("there is no DNSProvider %s in namespace %s: the zone is on none of its servers until there is", p.Name, zone.Namespace)
			continue
		}
		if problem := serving.ProviderProblem(p); problem != "" {
			warn("%s", problem)
			continue
		}
		if ready := meta.FindStatusCondition(p.Status.Conditions, status.Ready); ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == p.Generation {
			warn("DNSProvider %s is not ready (%s), so not all of its servers can have the zone; see: kubectl describe dnsprovider %s -n %s", p.Name, ready.Reason, p.Name, p.Namespace)
		}
		for _, server := range serving.AddProviders(nil, []*v1beta1.DNSProvider{p}) {
			_, address, _ := strings.Cut(server.Pod, "/")
			if server.Addr.IsValid() {
				address = server.Addr.String()
			}
			if other, taken := owners[address]; taken {
				warn("DNSProviders %s and %s both have the server %s: it is used as that of %s only; name one provider, or remove the server from the other", other, p.Name, address, other)
				continue
			}
			owners[address] = p.Name
		}
	}
	return warnings
}
