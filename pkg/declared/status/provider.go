package status

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Conditions of providers beside Ready.
const (
	// Reachable is True if all servers of a provider answer.
	Reachable = "Reachable"
	// Authenticated is True if all servers of a provider accept its keys.
	Authenticated = "Authenticated"
)

// Reasons of providers.
const (
	Unsupported          = "Unsupported"
	Unreachable          = "Unreachable"
	KeyUnusable          = "KeyUnusable"
	AuthenticationFailed = "AuthenticationFailed"
	TransferRefused      = "TransferRefused"
	UpdateRefused        = "UpdateRefused"
	NoZone               = "NoZone"
	SecretUnusable       = "SecretUnusable"
	TooManyProviders     = "TooManyProviders"
	AllReachable         = "AllReachable"
	AllAuthenticated     = "AllAuthenticated"
)

// refusals are the reasons for which etcd does not let us in, or cannot be asked to.
var refusals = map[string]bool{AuthenticationFailed: true, SecretUnusable: true, "PermissionDenied": true, "CertificateFailed": true}

// stalling are the reasons for which a provider is not ready before a person has changed it or its servers. A server that does not answer
// may come back, a Secret may be about to come, and so may a zone.
var stalling = map[string]bool{
	Unsupported: true, AuthenticationFailed: true, "PermissionDenied": true, "CertificateFailed": true, TooManyProviders: true,
	TransferRefused: true, UpdateRefused: true,
}

// ProviderFacts is what one look at a provider found.
type ProviderFacts struct {
	Generation int64
	Type       string
	// Owner is the name under which its values are kept in zones; empty if they are not, or if that is not known.
	Owner string
	// Zones counts those that name the provider.
	Zones int
	// Unsupported is why no zone can be on the provider, whatever its servers do; empty if one can.
	Unsupported string
	// KeyProblem is why a key cannot be read; empty if all can.
	KeyProblem string
	// LeftOut is why primaries do not let its secondaries transfer a zone, although the key can be read; empty if they do.
	LeftOut string
	// Store is whether what keeps the zones can be used, with the backend's reason if it cannot; zero where servers keep them.
	Store   Verdict
	Servers []ProviderServerFacts
}

// ProviderServerFacts is what a server of a provider answered.
type ProviderServerFacts struct {
	// Address and port as the provider has them, IP in use, empty if a host name has none, and Role: Primary or Secondary.
	Address, IP, Role string
	// Reachable is true if it answered at all, Authenticated if it knows the keys.
	Reachable, Authenticated bool
	// Unproven is true if it shows neither that it knows the keys nor that it does not, as there is no zone to ask it about.
	Unproven bool
	Software string
	// Problem is why it is not both, in its own words; empty if it is.
	Problem string
	// HasZone is true if it serves the zone that it was asked about; then TransferProblem is why that cannot be transferred.
	HasZone         bool
	TransferProblem string
	// UpdateProblem is why a primary takes no update of that zone. If it does, Compares is whether it refuses one whose prerequisite
	// does not hold; nil if that is not known.
	UpdateProblem string
	Compares      *bool
	// ByQuery is true if the zone is read by query, and no transfer was tried.
	ByQuery bool
}

func (s ProviderServerFacts) problem() string {
	return cmp.Or(s.Problem, s.UpdateProblem, s.TransferProblem)
}

// IsReady reports whether zones can be brought to the provider.
func (f ProviderFacts) IsReady() bool { return f.ready(f.reachable(), f.authenticated()).Holds() }

// Provider computes the status of a provider. Times are those of the last change.
func Provider(prev v1beta1.DNSProviderStatus, f ProviderFacts, now time.Time) v1beta1.DNSProviderStatus {
	next := *prev.DeepCopy()
	dropClaims(&next.Conditions)
	next.ObservedGeneration, next.Type, next.ZonesCount = f.Generation, f.Type, int32(f.Zones) //nolint:gosec // far below 2^31
	next.Owner, next.Servers = f.Owner, nil
	for _, s := range f.Servers {
		next.Servers = append(next.Servers, v1beta1.ProviderServerStatus{
			Address: s.Address, IP: s.IP, Role: s.Role, Reachable: s.Reachable, Authenticated: s.Authenticated, Software: s.Software,
			Message: TruncateMessage(s.problem()),
		})
	}
	if found := f.capabilities(); found != nil {
		next.Capabilities = found
	}
	reachable, authenticated := f.reachable(), f.authenticated()
	Set(&next.Conditions, Reachable, reachable, f.Generation, now)
	Set(&next.Conditions, Authenticated, authenticated, f.Generation, now)
	ready := f.ready(reachable, authenticated)
	Set(&next.Conditions, Ready, ready, f.Generation, now)
	setStalled(&next.Conditions, !ready.Holds() && stalling[ready.Reason], ready, f.Generation, now)
	return next
}

// StoreFailed is about what keeps the zones of a provider, with the reason of its error.
func StoreFailed(reason string, err error) Verdict { return False(reason, "etcd: "+err.Error()) }

// capabilities are what the servers were found to do, and what follows from their type; nil if none serves a zone of the provider.
func (f ProviderFacts) capabilities() *v1beta1.ProviderCapabilities {
	var found *v1beta1.ProviderCapabilities
	for _, s := range f.Servers {
		if s.Role != "Primary" || !s.HasZone {
			continue
		}
		switch {
		case f.Store.Holds(): // What the plugin etcd of CoreDNS can do.
			return &v1beta1.ProviderCapabilities{RecordTypes: []string{"A", "AAAA", "CNAME", "MX", "PTR", "SRV", "TXT"}, Atomic: new(true)}
		case f.Store.Reason != "":
			return nil
		}
		if found == nil { // It has answered with an SOA, and what RFC 2136 can update can be of any type and at any name.
			found = &v1beta1.ProviderCapabilities{Serial: true, Transfer: true, Atomic: s.Compares, Wildcards: true, Delegations: true}
		}
		found.Transfer = found.Transfer && s.TransferProblem == "" && !s.ByQuery
		found.Atomic = allOf(found.Atomic, s.Compares)
	}
	return found
}

// allOf is a and b, where nil is unknown.
func allOf(a, b *bool) *bool {
	if b == nil && ptr.Deref(a, true) || b != nil && !*b {
		return b
	}
	return a
}

// firstProblem is the first server for which `is` holds, with its problem; n counts all.
func (f ProviderFacts) firstProblem(is func(ProviderServerFacts) bool) (n int, first string) {
	for _, s := range f.Servers {
		if is(s) {
			if n++; n == 1 {
				first = s.Address + ": " + s.problem()
			}
		}
	}
	return n, first
}

func (f ProviderFacts) reachable() Verdict {
	if f.Unsupported != "" {
		return Unknown(Unsupported, "no server was asked: "+f.Unsupported)
	}
	switch f.Store.Reason {
	case Unreachable:
		return False(Unreachable, f.Store.Message)
	case SecretUnusable:
		return Unknown(SecretUnusable, "etcd was not asked: "+f.Store.Message)
	}
	n, first := f.firstProblem(func(s ProviderServerFacts) bool { return !s.Reachable })
	if n > 0 {
		return False(Unreachable, fmt.Sprintf("%d of %d servers do not answer; %s", n, len(f.Servers), first))
	}
	return True(AllReachable, fmt.Sprintf("%d of %d servers answer", len(f.Servers), len(f.Servers)))
}

func (f ProviderFacts) authenticated() Verdict {
	switch {
	case f.Unsupported != "":
		return Unknown(Unsupported, "no server was asked: "+f.Unsupported)
	case f.KeyProblem != "":
		return False(KeyUnusable, f.KeyProblem)
	case f.Store.Reason == Unreachable:
		return Unknown(Unreachable, f.Store.Message)
	case f.Store.Reason != "" && !f.Store.Holds() && !refusals[f.Store.Reason]:
		return Unknown(f.Store.Reason, f.Store.Message)
	case f.Store.Reason != "" && !f.Store.Holds():
		return False(f.Store.Reason, f.Store.Message)
	case f.Store.Holds():
		return True(AllAuthenticated, "etcd lets Lockstep in; CoreDNS does not sign its answers")
	}
	n, first := f.firstProblem(func(s ProviderServerFacts) bool { return s.Reachable && !s.Authenticated && !s.Unproven })
	if n > 0 {
		return False(AuthenticationFailed, fmt.Sprintf("%d of %d servers do not accept a key; %s", n, len(f.Servers), first))
	}
	if n, _ = f.firstProblem(func(s ProviderServerFacts) bool { return s.Unproven }); n > 0 {
		return Unknown(NoZone, fmt.Sprintf("no zone names the provider yet, and %d of %d servers sign no answer about others: whether they accept the keys is known once one does", n, len(f.Servers)))
	}
	if n, first = f.firstProblem(func(s ProviderServerFacts) bool { return !s.Authenticated }); n > 0 {
		return Unknown(Unreachable, fmt.Sprintf("%d of %d servers do not answer; %s", n, len(f.Servers), first))
	}
	return True(AllAuthenticated, fmt.Sprintf("%d of %d servers accept the keys", len(f.Servers), len(f.Servers)))
}

func (f ProviderFacts) ready(reachable, authenticated Verdict) Verdict {
	switch {
	case f.Unsupported != "":
		return False(Unsupported, f.Unsupported)
	case f.Store.Reason != "" && !f.Store.Holds():
		return False(f.Store.Reason, f.Store.Message)
	case f.LeftOut != "" && f.KeyProblem == "":
		return False(TooManyProviders, f.LeftOut)
	case !authenticated.Holds() && authenticated.Reason != Unreachable:
		return False(authenticated.Reason, authenticated.Message)
	case !reachable.Holds():
		return False(reachable.Reason, reachable.Message)
	case f.Store.Holds():
		return True(AllReady, fmt.Sprintf("etcd can be used, and %d of %d servers answer", len(f.Servers), len(f.Servers)))
	}
	if n, first := f.firstProblem(func(s ProviderServerFacts) bool { return s.UpdateProblem != "" }); n > 0 {
		return False(UpdateRefused, fmt.Sprintf(
			"%d of %d servers take no update of a zone; %s; let the update key update the zones (BIND: allow-update or update-policy, Knot: acl with action update, PowerDNS: TSIG-ALLOW-DNSUPDATE), and see that they are primary ones there and not frozen",
			n, len(f.Servers), first))
	}
	if n, first := f.firstProblem(func(s ProviderServerFacts) bool { return s.TransferProblem != "" }); n > 0 {
		return False(TransferRefused, fmt.Sprintf(
			"%d of %d servers do not transfer a zone; %s; let the transfer key transfer the zones (BIND: allow-transfer, Knot: acl with action transfer, PowerDNS: TSIG-ALLOW-AXFR) or, where nobody may, set readBy to Query", n, len(f.Servers), first))
	}
	return True(AllReady, fmt.Sprintf("%d of %d servers answer and accept the keys", len(f.Servers), len(f.Servers)))
}
