package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
)

// missingReferences warns about servers that a zone names and that are not there. They may be still to come.
func (r zoneReviewer) missingReferences(ctx context.Context, zone *v1beta1.DNSZone) ([]string, error) {
	warnings, err := warnMissingCluster(ctx, r.objects, zone.Namespace, zone.Spec.ClusterRef, "the zone is on none of its servers")
	if err != nil {
		return nil, err
	}
	spec := field.NewPath("spec")
	if name := zone.Spec.ClusterProviderRef; name != "" {
		if known, err := r.objects.hasCluster(ctx, "", name); err != nil {
			return nil, err
		} else if !known && !r.objects.hasLiveCluster(ctx, "", name) {
			warnings = append(warnings, fmt.Sprintf("%s: there is no Bind9GlobalCluster or ClusterBind9Provider %s: the zone is on none of its servers until there is",
				spec.Child("clusterProviderRef"), name))
		}
	}
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return nil, err
	}
	for i := range zone.Spec.Bind9InstancesFrom {
		only := &v1beta1.DNSZone{ObjectMeta: zone.ObjectMeta}
		only.Spec.Bind9InstancesFrom = zone.Spec.Bind9InstancesFrom[i : i+1]
		if len(all.InstancesOf(only)) > 0 {
			continue
		}
		live := membership.NewFleet(membership.FleetObjects{Instances: r.objects.liveInstances(ctx, &only.Spec.Bind9InstancesFrom[0].Selector)}, "")
		if len(live.InstancesOf(only)) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s: selects no Bind9Instance; for one of another namespace, the zone needs annotation %s with that namespace, and the instance annotation %s",
				spec.Child("bind9InstancesFrom").Index(i).Child("selector"), v1beta1.AllowInstanceNamespacesAnnotation, v1beta1.AllowZoneNamespacesAnnotation))
		}
	}
	return append(warnings, r.warnProviders(ctx, zone, all)...), nil
}

// warnMissingCluster warns about a clusterRef that names neither a cluster of the namespace nor a global one.
func warnMissingCluster(ctx context.Context, o Objects, namespace, name, so string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	places := []string{namespace, ""}
	for _, place := range places {
		if known, err := o.hasCluster(ctx, place, name); known || err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(places, func(place string) bool { return o.hasLiveCluster(ctx, place, name) }) {
		return nil, nil
	}
	return []string{fmt.Sprintf("spec.clusterRef: there is no Bind9Cluster %s in namespace %s, and no Bind9GlobalCluster or ClusterBind9Provider of that name: %s until there is",
		name, namespace, so)}, nil
}

// instanceReviewer judges instances: whether the cluster is there that they name, that they do not claim an owner, and what their servers
// would be made from.
type instanceReviewer struct {
	objects Objects
}

func (r instanceReviewer) review(ctx context.Context, instance, _ *v1beta1.Bind9Instance) (Result, error) {
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return Result{}, err
	}
	if n := all.ForgedOwner(instance); n >= 0 {
		if live := r.objects.liveFleet(ctx); live == nil || live.ForgedOwner(instance) >= 0 {
			owner := instance.OwnerReferences[n]
			return Result{Problems: field.ErrorList{field.Forbidden(field.NewPath("metadata", "ownerReferences").Index(n), fmt.Sprintf(
				"%s %s does not own this instance: its instances are made by Lockstep, in a namespace of those who run it; remove the reference", owner.Kind, owner.Name))}}, nil
		}
	}
	warnings, err := warnMissingCluster(ctx, r.objects, instance.Namespace, instance.Spec.ClusterRef, "the instance has no server")
	if err != nil {
		return Result{}, err
	}
	own, err := configurationWarnings(ctx, r.objects, instance)
	return Result{Warnings: append(warnings, own...)}, err
}

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
	provider.UID = cmp.Or(provider.UID, "new") // Without one it would stand for a provider that does not exist.
	if provider.CreationTimestamp.IsZero() {
		provider.CreationTimestamp = metav1.Now()
	}
	if problem := serving.ProviderProblem(provider); problem != "" {
		return []string{problem}
	}
	servers := serving.ServersOf(provider)
	if c := provider.Spec.CoreDNS; c != nil && c.Servers.Service == nil && len(c.Servers.Addresses) == 0 {
		warnings = append(warnings, "spec.coreDNS.servers: "+servers[0].Message)
	}
	primaries, secondaries := serving.DeclaredServers(provider)
	named := map[string]bool{}
	for _, s := range slices.Concat(primaries, secondaries) {
		address := strings.ToLower(serving.ServerAddress(s))
		if named[address] {
			warnings = append(warnings, fmt.Sprintf("spec: the server %s is there twice: it is used once", address))
		}
		named[address] = true
	}
	neighbors := append(all.GuestsBeside(provider), provider)
	if membership.IsGuest(provider, "") && !slices.Contains(membership.AdmitGuests(neighbors), provider) {
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
		for _, server := range serving.ServersOf(p) {
			_, address, _ := strings.Cut(server.Pod, "/")
			if server.Addr.IsValid() {
				address = server.Addr.String()
			}
			if other, taken := owners[address]; taken {
				warn("DNSProviders %s and %s both have the server %s: it is used as %s's only; name one provider, or remove the server from the other", other, p.Name, address, other)
				continue
			}
			owners[address] = p.Name
		}
	}
	return warnings
}

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
	warnings := unsupportedIn(ctx, r.objects, zone, content, keys...)
	for i := range warnings {
		warnings[i] = "spec: " + warnings[i]
	}
	return warnings
}

// recordLimit is how many records of one name and type a zone's servers take.
func recordLimit(ctx context.Context, objects Objects, zone *v1beta1.DNSZone) source.RecordLimit {
	all, err := objects.fleet(ctx)
	if err != nil {
		return source.RecordLimit{}
	}
	return membership.ContentOptions(all.InstancesOf(zone), all.ProvidersOf(zone)).MaxRecords
}

// unsupportedIn says which RRsets the providers of a zone cannot hold, if its content is as given.
func unsupportedIn(ctx context.Context, objects Objects, zone *v1beta1.DNSZone, content plan.Content, keys ...rrset.Key) (warnings []string) {
	all, err := objects.fleet(ctx)
	name, nameErr := declaration.ZoneName(zone.Spec.ZoneName)
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
