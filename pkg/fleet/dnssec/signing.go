// Package dnssec decides how a zone is signed and by whom, reports how it is signed from what its signer serves, and keeps
// the Secrets of signing keys.
//
// A signed zone has one signer: signatures of one content differ from server to server, and a secondary that takes
// increments of both has neither's. Its other primaries are secondaries of the signer.
package dnssec

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// Signing is how a zone is signed; the zero value for one without primaries. A zone with an empty Policy is not signed.
type Signing struct {
	Policy string
	// Signer is the instance that signs.
	Signer *v1beta1.Bind9Instance
	// stays is true when nothing asks for the policy any more. The zone is signed until somebody says that its parent has
	// no DS record left: otherwise resolvers that validate would call it bogus.
	stays bool
	// next is the policy that follows once the signer knows of the DS records that it cannot do without.
	next string
	// ends is true while the zone is to be signed no more, and resolvers may have DS records of it from a zone that is declared here.
	ends bool
	// owner is the object that the keys belong to.
	owner keyrotation.Owner
	// export is true when keys are kept in a Secret, beside the signer's volume.
	export bool
}

// SigningOf decides how a zone is signed on its instances. systemNamespace is that of Lockstep, and of the instances of cluster-scoped
// clusters that name none.
func SigningOf(ctx context.Context, c client.Reader, zone *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance, systemNamespace string) (Signing, error) {
	signer := membership.SignerOf(instances)
	if signer == nil {
		return Signing{}, nil
	}
	s := Signing{Signer: signer}
	cluster, err := inventory.ClusterOf(ctx, c, signer, systemNamespace)
	if err != nil {
		return s, err
	}
	s.owner = keyrotation.OwnerOf(signer, cluster)
	var base *v1beta1.Bind9Config
	if cluster.Object != nil {
		base = cluster.Spec.Global
	}
	options := named.MergeOptions(base, signer.Spec.Config)
	s.Policy, s.export = cmp.Or(zone.Spec.DNSSECPolicy, named.SigningPolicy(options)), named.ExportsKeys(options)
	last := zone.Status.DNSSEC
	switch {
	case last == nil || last.Policy == "":
		if s.Policy == clause.PolicyNone {
			s.Policy = ""
		}
	case s.Policy == clause.PolicyNone:
		s.Policy, s.stays = last.Policy, last.Policy != clause.PolicyInsecure
	case s.Policy == clause.PolicyInsecure && last.Policy != clause.PolicyInsecure && last.Delegation != nil && !last.Delegation.SigningMayEnd:
		s.Policy, s.ends = last.Policy, true
	case s.Policy != clause.PolicyInsecure && last.Policy != clause.PolicyInsecure && s.Policy != last.Policy && last.Delegation.IsUnconfirmed():
		// BIND drops the keys of the former policy at once if it knows of no DS record.
		s.Policy, s.next = last.Policy, s.Policy
	}
	return s, nil
}

// Ends reports whether the zone is to be signed no more.
func (s Signing) Ends() bool { return s.ends || s.Policy == clause.PolicyInsecure }

// IsSigned reports whether the zone is signed.
func (s Signing) IsSigned() bool { return s.Policy != "" }

// Demote makes secondaries of the instances' primaries that do not sign the zone.
func (s Signing) Demote(servers []observe.Server) []observe.Server {
	if !s.IsSigned() {
		return servers
	}
	servers = slices.Clone(servers)
	for i := range servers {
		if servers[i].Provider != "" {
			continue // It cannot follow the signer.
		}
		if s.Signer == nil || servers[i].Namespace != s.Signer.Namespace || servers[i].Instance != s.Signer.Name {
			servers[i].Role = observe.Secondary
		}
	}
	return servers
}

// ServiceAddresses are the Services of the servers that have a role in the zone.
func (s Signing) ServiceAddresses(instances []*v1beta1.Bind9Instance, role v1beta1.ServerRole) []netip.Addr {
	if !s.IsSigned() {
		return membership.ServiceAddresses(instances, role)
	}
	if role == v1beta1.RolePrimary {
		return membership.ServiceAddresses([]*v1beta1.Bind9Instance{s.Signer}, role)
	}
	others := slices.DeleteFunc(slices.Clone(instances), func(i *v1beta1.Bind9Instance) bool { return i == s.Signer })
	return slices.Concat(membership.ServiceAddresses(others, role), membership.ServiceAddresses(others, v1beta1.RolePrimary))
}

// IsServed reports whether a copy of the zone, nil when there is none, is as it will be: signed, if it is to be.
func (s Signing) IsServed(mirror *observe.Mirror) bool {
	return !s.IsSigned() || s.Policy == clause.PolicyInsecure || mirror != nil && IsWhole(mirror)
}

// CanRestore reports whether a zone comes back as a secondary has it, signatures included: with the same keys the signer goes on where it
// was, on the serial that the secondaries know.
func (s Signing) CanRestore(mirror *observe.Mirror) bool {
	return s.IsSigned() && mirror != nil && len(keySigningKeys(mirror)) > 0 && IsWhole(mirror)
}

// Obstacle says why a zone with so many primaries cannot be signed; empty when it can.
func (s Signing) Obstacle(primaries int) string {
	if primaries < 2 || !s.IsSigned() {
		return ""
	}
	return fmt.Sprintf("dnssecPolicy %q cannot be used: instance %s would sign the zone and has %d pods behind one address; give it one replica, and use more instances",
		s.Policy, client.ObjectKeyFromObject(s.Signer), primaries)
}

// Remark says why a zone is signed by a policy that nothing asks for any more, and what a user has to do; empty for any other.
func (s Signing) Remark(status *v1beta1.DNSSECStatus) string {
	switch {
	case s.next != "":
		return fmt.Sprintf("dnssecPolicy %q takes the place of %q once the server that signs knows of the DS record in the parent zone; the condition Delegated says what is missing", s.next, s.Policy)
	case s.stays && status != nil:
		return fmt.Sprintf("it stays signed by dnssecPolicy %q, which nothing asks for any more: remove the DS records from the parent zone, wait until their TTL has passed, then set dnssecPolicy to %q",
			s.Policy, clause.PolicyInsecure)
	}
	return ""
}

// KeySecretName is the name of the Secret that keeps the zone's keys; empty when none does.
func (s Signing) KeySecretName(zone *v1beta1.DNSZone) string {
	if !s.IsSigned() || !s.export || s.owner.Object == nil {
		return ""
	}
	return keySecretName(s.owner, zone)
}
