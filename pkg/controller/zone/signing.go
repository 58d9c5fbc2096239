package zone

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// A signed zone has one signer: signatures of one content differ from server to server, and secondaries that take
// increments of both have neither's. Its other primaries follow the signer as secondaries do.

// signing is how a zone is signed; the zero value for one that is not.
type signing struct {
	policy string
	// stays is true when nothing asks for the policy any more. The zone is signed until somebody says that its parent has
	// no DS record left: else resolvers that validate would call it bogus.
	stays bool
	// signer is the instance that signs, owner the object that its keys belong to.
	signer *v1beta1.Bind9Instance
	owner  tsigkeys.Owner
	// export is true when keys are kept in a Secret, beside the signer's volume.
	export bool
}

func (s signing) on() bool { return s.policy != "" }

// secret is the name of the Secret that keeps the zone's keys; empty when none does.
func (s signing) secret(zone *v1beta1.DNSZone) string {
	if !s.on() || !s.export || s.owner.Object == nil {
		return ""
	}
	return zoneKeySecret(s.owner.GetName(), source.DNSName(zone))
}

// signingOf decides how a zone is signed on its instances.
func (r *zoneReconciler) signingOf(ctx context.Context, zone *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) (signing, error) {
	signer := signerOf(instances)
	if signer == nil {
		return signing{}, nil
	}
	s := signing{signer: signer}
	owner, err := fleet.ClusterOf(ctx, r.client, signer, r.deps.Home)
	if err != nil {
		return s, err
	}
	var base *v1beta1.Bind9Config
	s.owner = tsigkeys.OwnerOf(signer, owner)
	if owner.Object != nil {
		base = owner.Spec.Global
	}
	options := named.MergeOptions(base, signer.Spec.Config)
	s.policy, s.export = cmp.Or(zone.Spec.DNSSECPolicy, named.SigningPolicy(options)), named.ExportsKeys(options)
	if s.policy == named.PolicyNone {
		s.policy = ""
		if told := zone.Status.DNSSEC; told != nil && told.Policy != "" {
			s.policy, s.stays = told.Policy, told.Policy != named.PolicyInsecure
		}
	}
	return s, nil
}

// signerOf is the oldest primary: it stays the same when others join.
func signerOf(instances []*v1beta1.Bind9Instance) *v1beta1.Bind9Instance {
	var signer *v1beta1.Bind9Instance
	for _, i := range instances {
		if i.Spec.Role.Normalize() == v1beta1.RolePrimary && (signer == nil || i.CreationTimestamp.Before(&signer.CreationTimestamp)) {
			signer = i
		}
	}
	return signer
}

// follow makes the primaries that do not sign secondaries of the one that does.
func (s *surroundings) follow() {
	if !s.signing.on() {
		return
	}
	s.servers = slices.Clone(s.servers)
	for i := range s.servers {
		if !s.signs(s.servers[i]) {
			s.servers[i].Role = observe.Secondary
		}
	}
}

// addresses are the Services of the servers that have a role in the signed zone.
func (s signing) addresses(instances []*v1beta1.Bind9Instance, role v1beta1.ServerRole) []netip.Addr {
	if role == v1beta1.RolePrimary {
		return membership.ServiceAddresses([]*v1beta1.Bind9Instance{s.signer}, role)
	}
	others := slices.DeleteFunc(slices.Clone(instances), func(i *v1beta1.Bind9Instance) bool { return i == s.signer })
	return slices.Concat(membership.ServiceAddresses(others, role), membership.ServiceAddresses(others, v1beta1.RolePrimary))
}

func (s *surroundings) signs(server observe.Server) bool {
	return s.signing.signer != nil && server.Namespace == s.signing.signer.Namespace && server.Instance == s.signing.signer.Name
}

// tellSigning tells how the zone is signed.
func (p *pass) tellSigning() {
	for _, q := range p.primaries {
		if q.err == nil && q.seen.Mirror != nil {
			p.state.dnssec, p.state.dnssecKnown = dnssecStatus(q.seen.Mirror, p.signing.policy), true
		}
	}
	p.event.DNSSEC, p.event.DNSSECKnown = p.state.dnssec, p.state.dnssecKnown
	if p.signing.stays && p.state.dnssec != nil {
		p.event.Remark = fmt.Sprintf("it stays signed by dnssecPolicy %q, which nothing asks for any more: remove the DS records from the parent zone, wait until their TTL has passed, then set dnssecPolicy to %q",
			p.signing.policy, named.PolicyInsecure)
	}
}

// unfit says why the zone cannot be signed where it is to be; empty when it can.
func (p *pass) unfit() string {
	if len(p.primaries) < 2 || !p.signing.on() {
		return ""
	}
	signer := types.NamespacedName{Namespace: p.signing.signer.Namespace, Name: p.signing.signer.Name}
	return fmt.Sprintf("dnssecPolicy %q cannot be used: instance %s would sign the zone and has %d pods behind one address; give it one replica, and use more instances",
		p.signing.policy, signer, len(p.primaries))
}
