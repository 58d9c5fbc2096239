package membership

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
)

// placedZone is a zone with where it is to be served.
type placedZone struct {
	*v1beta1.DNSZone
	name      string // canonical
	instances []*v1beta1.Bind9Instance
	// hosts has, for each instance, the host under which the zone's arrival there is recorded: a cluster that the zone names
	// keeps it while instances come and go.
	hosts    []string
	clusters []string // cluster-scoped, by name
	// foreign are the servers of other namespaces.
	foreign []serverGroup

	// granted is the suffix by which ZoneGrants permit the zone, denied why they do not.
	granted string
	denied  Refusal
	// served is true once it is known that no other zone refuses this one.
	served bool
}

// serverGroup is the servers of a namespace that belong to a cluster-scoped cluster or, without one, to none.
type serverGroup struct{ cluster, namespace string }

func (f *Fleet) place(zone *v1beta1.DNSZone) *placedZone {
	p := &placedZone{DNSZone: zone, instances: f.InstancesOf(zone)}
	p.name, _ = declaration.ZoneName(zone.Spec.ZoneName)
	addGroup := func(g serverGroup) {
		if g.namespace != zone.Namespace && !slices.Contains(p.foreign, g) {
			p.foreign = append(p.foreign, g)
		}
	}
	for _, ref := range []string{zone.Spec.ClusterRef, zone.Spec.ClusterProviderRef} {
		for _, g := range f.globals[ref] {
			p.clusters = append(p.clusters, ref)
			addGroup(serverGroup{ref, g.namespace})
		}
	}
	byRef, byProviderRef := clusterHost(zone.Spec.ClusterRef), clusterHost(zone.Spec.ClusterProviderRef)
	for _, i := range p.instances {
		group, host := serverGroup{namespace: i.Namespace}, ""
		if zone.Spec.ClusterRef != "" && i.Spec.ClusterRef == zone.Spec.ClusterRef && i.Namespace == zone.Namespace {
			host = byRef
		}
		for _, o := range i.OwnerReferences {
			name := f.globalOf(i, o.Name)
			if name == "" {
				continue
			}
			group.cluster = name
			switch name {
			case zone.Spec.ClusterRef:
				host = byRef
			case zone.Spec.ClusterProviderRef:
				host = cmp.Or(host, byProviderRef)
			}
		}
		if host == "" {
			host = "instance/" + i.Namespace + "/" + i.Name
		}
		addGroup(group)
		p.hosts = append(p.hosts, host)
	}
	return p
}

func clusterHost(name string) string { return "cluster/" + name }

func providerHost(name string) string { return "provider/" + name }

// allHosts lists every host that a zone's declaration leads to, sorted. A cluster or provider counts before it exists: the zone that
// named it first has come there first.
func (p *placedZone) allHosts() []string {
	hosts := slices.Clone(p.hosts)
	for _, ref := range []string{p.Spec.ClusterRef, p.Spec.ClusterProviderRef} {
		if ref != "" {
			hosts = append(hosts, clusterHost(ref))
		}
	}
	for _, ref := range p.Spec.ProviderRefs {
		hosts = append(hosts, providerHost(ref.Name))
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// ArrivalsOf is what the status of a served zone says about its arrivals: since when it has been on each of its hosts, now where it has
// not been before. comes is true if there is such a host: the zone must not be brought to its servers before its status says since when
// it is there.
func (f *Fleet) ArrivalsOf(zone *v1beta1.DNSZone, now time.Time) (arrivals *v1beta1.ZoneArrivals, comes bool) {
	p := f.place(zone)
	arrivals = &v1beta1.ZoneArrivals{}
	for _, host := range p.allHosts() {
		since := p.arrivalAt(host).since
		if since == "" {
			since, comes = arrivalTime(now), true
		}
		arrivals.Hosts = append(arrivals.Hosts, v1beta1.ZoneArrival{Host: host, Since: since})
	}
	return arrivals, comes
}

// Comes reports whether a change of a zone leads it to a host that it did not lead to before.
func (f *Fleet) Comes(before, after *v1beta1.DNSZone) bool {
	known := f.place(before).allHosts()
	return slices.ContainsFunc(f.place(after).allHosts(), func(host string) bool { return !slices.Contains(known, host) })
}

// arrivalTime formats a time so that texts are ordered as times are.
func arrivalTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// arrival is since when a zone has been somewhere: "" if it is about to come. It is recorded if the controller has served the
// zone there.
type arrival struct {
	since    string
	recorded bool
}

// earlier merges two arrivals of one zone into the earlier.
func (a arrival) earlier(b arrival) arrival {
	if a.since == "" || b.since != "" && b.since < a.since {
		a.since = b.since
	}
	a.recorded = a.recorded || b.recorded
	return a
}

// arrivalAt is when the zone came to one of its hosts. What its status says counts. Before the controller has looked at the zone for the
// first time, it came when it was created, if nobody has changed it since. A status without arrivals was written by an earlier version:
// the zone came to the servers that it lists when it was created.
func (p *placedZone) arrivalAt(host string) arrival {
	switch {
	case p.Status.Arrivals != nil:
		for _, a := range p.Status.Arrivals.Hosts {
			if a.Host == host {
				return arrival{a.Since, true}
			}
		}
	case isNew(p.DNSZone):
		return arrival{since: arrivalTime(p.CreationTimestamp.Time)}
	case p.Status.ObservedGeneration > 0 && p.isListed(host):
		return arrival{arrivalTime(p.CreationTimestamp.Time), true}
	}
	return arrival{}
}

// isNew reports whether the controller has not looked at a zone yet, which is as it was created: its status observes generation -1 by
// default, or 0.
func isNew(zone *v1beta1.DNSZone) bool {
	return zone.Status.Arrivals == nil && zone.Status.ObservedGeneration <= 0 && zone.Generation <= 1 && !zone.CreationTimestamp.IsZero()
}

// isListed reports whether the zone's status lists a host, or an instance that belongs to it.
func (p *placedZone) isListed(host string) bool {
	if IsRefused(p.DNSZone) {
		return false
	}
	return slices.ContainsFunc(p.Status.Providers, func(s v1beta1.ZoneProvider) bool { return providerHost(s.Name) == host }) ||
		slices.ContainsFunc(p.Status.Bind9Instances, func(s v1beta1.ZoneInstance) bool {
			n := slices.IndexFunc(p.instances, func(i *v1beta1.Bind9Instance) bool { return i.Namespace == s.Namespace && i.Name == s.Name })
			return n >= 0 && p.hosts[n] == host
		})
}

// meet compares when two zones came to the servers that they share: an instance, a cluster-scoped cluster or a DNSProvider. shared is
// false if there is none.
func (p *placedZone) meet(o *placedZone) (own, others arrival, shared bool) {
	var met []string
	meetAt := func(host, otherHost string) {
		own, others, shared = own.earlier(p.arrivalAt(host)), others.earlier(o.arrivalAt(otherHost)), true
		met = append(met, host)
	}
	for _, c := range p.clusters {
		if slices.Contains(o.clusters, c) {
			meetAt(clusterHost(c), clusterHost(c))
		}
	}
	for _, ref := range p.Spec.ProviderRefs {
		if p.Namespace == o.Namespace && slices.Contains(o.Spec.ProviderRefs, ref) {
			meetAt(providerHost(ref.Name), providerHost(ref.Name))
		}
	}
	for n, i := range p.instances {
		if slices.Contains(met, p.hosts[n]) {
			continue
		}
		if m := slices.Index(o.instances, i); m >= 0 {
			meetAt(p.hosts[n], o.hosts[m])
		}
	}
	return own, others, shared
}

// goesBefore orders two zones that share servers: the one that came first is served. Of zones that are about to come, the older one goes
// before. A zone that is going goes before none.
func (p *placedZone) goesBefore(o *placedZone) bool {
	if p == o || p.denied != (Refusal{}) || v1beta1.IsGoing(p.DNSZone) {
		return false
	}
	own, others, shared := p.meet(o)
	switch {
	case !shared || !own.recorded && !p.served:
		return false
	case (own.since == "") != (others.since == ""):
		return own.since != ""
	}
	return cmp.Or(cmp.Compare(own.since, others.since), compareZones(p.DNSZone, o.DNSZone)) < 0
}

// compareUnrecorded is the order in which zones come that are on no server yet.
func compareUnrecorded(a, b *placedZone) int {
	if isNew(a.DNSZone) != isNew(b.DNSZone) {
		if isNew(a.DNSZone) {
			return -1
		}
		return 1
	}
	return compareZones(a.DNSZone, b.DNSZone)
}
