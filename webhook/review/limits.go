package review

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Limits are how many DNSZones and DNSProviders a namespace may have; 0 is any number. They bound what one tenant costs the processes
// that all share. Many creations at once may exceed them by what the caches have not seen yet.
type Limits struct{ Zones, Providers int }

// refusal returns why a namespace gets no more of the kind of a new object, "" if it does.
func (l Limits) refusal(ctx context.Context, objects Objects, req admission.Request) (string, error) {
	if req.Operation != admissionv1.Create || req.Kind.Group != v1beta1.GroupName {
		return "", nil
	}
	limit, flag, have := 0, "", 0
	switch req.Kind.Kind {
	case "DNSZone":
		limit, flag, have = l.Zones, "max-zones", objects.zoneCache().CountZones(req.Namespace)
	case "DNSProvider":
		all, err := objects.fleet(ctx)
		if err != nil {
			return "", err
		}
		limit, flag, have = l.Providers, "max-providers", all.CountProviders(req.Namespace)
	}
	if limit == 0 || have < limit {
		return "", nil
	}
	if now, known := objects.countLive(ctx, req.Namespace, req.Kind.Kind); known && now < limit {
		return "", nil
	}
	return fmt.Sprintf("namespace %s may have %d objects of kind %s, and has %d: delete one that is not needed, use another namespace, or ask those who run Lockstep "+
		"for a higher --%s of its webhook", req.Namespace, limit, req.Kind.Kind, have, flag), nil
}
