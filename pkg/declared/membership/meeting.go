package membership

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Anybody may have any number of zones of somebody's name on servers of their own, or on none. They must cost others no more than a look.

// places are where zones of a namespace are served, as far as the fleet knows.
type places struct {
	namespace string
	clusters  []string
	providers []v1beta1.ProviderReference
	instances []*v1beta1.Bind9Instance
}

// meeting places a zone and those of others that share servers with it, or with one that does, and so on: nobody else decides whether it is
// served. It looks at each of the others once for each server of these. It changes others.
func (f *Fleet) meeting(zone *v1beta1.DNSZone, others []*v1beta1.DNSZone) []*placedZone {
	met, seen := []*placedZone{f.place(zone)}, map[any]struct{}{}
	others = slices.DeleteFunc(others, func(o *v1beta1.DNSZone) bool { return KeyOfZone(o) == KeyOfZone(zone) })
	for n := 0; n < len(met) && len(others) > 0; n++ {
		unseen := met[n].placesWithout(seen)
		if len(unseen.clusters)+len(unseen.providers)+len(unseen.instances) == 0 {
			continue
		}
		others = slices.DeleteFunc(others, func(o *v1beta1.DNSZone) bool {
			found := f.serve(unseen, o)
			if found {
				met = append(met, f.place(o))
			}
			return found
		})
	}
	return met
}

// Sharing returns those of some zones that share servers with one, as far as the fleet knows them. It changes others.
func (f *Fleet) Sharing(zone *v1beta1.DNSZone, others []*v1beta1.DNSZone) []*v1beta1.DNSZone {
	at := f.place(zone).placesWithout(map[any]struct{}{})
	return slices.DeleteFunc(others, func(o *v1beta1.DNSZone) bool { return !f.serve(at, o) })
}

// Share reports whether two zones share servers, as far as the fleet knows them.
func (f *Fleet) Share(a, b *v1beta1.DNSZone) bool {
	return len(f.Sharing(a, []*v1beta1.DNSZone{b})) > 0
}

// placesWithout leaves out the places of a zone that have been seen, and marks the others as seen.
func (p *placedZone) placesWithout(seen map[any]struct{}) places {
	isSeen := func(place any) bool {
		_, again := seen[place]
		seen[place] = struct{}{}
		return again
	}
	return places{
		namespace: p.Namespace,
		clusters:  slices.DeleteFunc(slices.Clone(p.clusters), func(name string) bool { return isSeen(name) }),
		providers: slices.DeleteFunc(slices.Clone(p.Spec.ProviderRefs), func(ref v1beta1.ProviderReference) bool {
			return isSeen(types.NamespacedName{Namespace: p.Namespace, Name: ref.Name})
		}),
		instances: slices.DeleteFunc(slices.Clone(p.instances), func(i *v1beta1.Bind9Instance) bool { return isSeen(i) }),
	}
}

// serve reports whether a zone is at any of some places. It is what placedZone.meet says of a zone that is not placed.
func (f *Fleet) serve(at places, o *v1beta1.DNSZone) bool {
	return slices.ContainsFunc(at.clusters, func(name string) bool { return name == o.Spec.ClusterRef || name == o.Spec.ClusterProviderRef }) ||
		at.namespace == o.Namespace && slices.ContainsFunc(at.providers, func(ref v1beta1.ProviderReference) bool { return slices.Contains(o.Spec.ProviderRefs, ref) }) ||
		slices.ContainsFunc(at.instances, func(i *v1beta1.Bind9Instance) bool { return f.Serves(i, o) })
}
