package review

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
)

// warnUnsupported warns of a record that a provider of its zone cannot hold, by itself or beside its neighbors.
func (r recordReviewer) warnUnsupported(ctx context.Context, zone *v1beta1.DNSZone, neighbors []source.Object, record v1beta1.Record) []string {
	if len(zone.Spec.ProviderRefs) == 0 {
		return nil
	}
	content, err := source.Build(zone, append(slices.Clone(neighbors), record), source.Options{})
	if err != nil {
		return nil
	}
	var keys []rrset.Key
	for _, d := range content.Of(source.KeyOf(record)) {
		keys = append(keys, d.Key)
	}
	return unsupportedIn(ctx, r.objects, zone, content, keys...)
}

// unsupportedIn says which RRsets the providers of a zone cannot hold, if its content is as given.
func unsupportedIn(ctx context.Context, objects Objects, zone *v1beta1.DNSZone, content plan.Content, keys ...rrset.Key) (warnings []string) {
	all, err := objects.fleet(ctx)
	name, nameErr := source.ZoneName(zone.Spec.ZoneName)
	if err != nil || nameErr != nil {
		return nil
	}
	for _, p := range all.ProvidersOf(zone) {
		if p.Spec.CoreDNS == nil {
			continue
		}
		reasons := coredns.Unsupported(name, content)
		for _, key := range keys {
			if reason := reasons[key]; reason != "" {
				warnings = append(warnings, fmt.Sprintf("DNSProvider %s cannot hold this: %s", p.Name, reason))
			}
		}
	}
	return warnings
}
