package review

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

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
		if problem := observe.ProviderProblem(p); problem != "" {
			warn("%s", problem)
			continue
		}
		if ready := meta.FindStatusCondition(p.Status.Conditions, status.Ready); ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == p.Generation {
			warn("DNSProvider %s is not ready (%s), so not all of its servers can have the zone; see: kubectl describe dnsprovider %s -n %s", p.Name, ready.Reason, p.Name, p.Namespace)
		}
		for _, server := range observe.AddProviders(nil, []*v1beta1.DNSProvider{p}) {
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
