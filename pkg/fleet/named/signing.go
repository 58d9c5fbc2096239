package named

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// ownPolicy is the name of the policy that is made of options that give it none.
const ownPolicy = "signing"

// leastLifetime of a key that is rolled: named refuses to start with a policy in which the next roll would begin before the
// last one is over.
const leastLifetime = 14 * day

const day = 24 * 60 * 60

// signingConfig returns how zones that say nothing else are signed; nil when they are not.
func signingConfig(o v1beta1.Bind9Config) *v1beta1.DNSSECSigningConfig {
	dnssec := ptr.Deref(o.DNSSEC, v1beta1.DNSSECConfig{})
	switch {
	case dnssec.Signing != nil && dnssec.Signing.Enabled:
		return dnssec.Signing
	case dnssec.Signing == nil && ptr.Deref(dnssec.Enabled, false):
		return &v1beta1.DNSSECSigningConfig{Enabled: true}
	}
	return nil
}

// SigningPolicy returns the dnssec-policy of zones that name none themselves; clause.PolicyNone when they are not signed.
func SigningPolicy(o v1beta1.Bind9Config) string {
	s := signingConfig(o)
	switch {
	case s == nil:
		return clause.PolicyNone
	case s.Policy != "" && (s.Policy != clause.PolicyDefault || !hasParameters(s)):
		return s.Policy
	case hasParameters(s):
		return ownPolicy
	}
	return clause.PolicyDefault
}

// ExportsKeys reports whether the keys that named makes are kept in Secrets too.
func ExportsKeys(o v1beta1.Bind9Config) bool {
	s := signingConfig(o)
	return s == nil || ptr.Deref(s.ExportToSecret, true)
}

func hasParameters(s *v1beta1.DNSSECSigningConfig) bool {
	return s.Algorithm != "" || s.KSKLifetime != "" || s.ZSKLifetime != "" || s.NSEC3 != nil || s.NSEC3Salt != "" || s.NSEC3Iterations != nil
}

// renderSigningPolicy defines the policy of the options, unless named knows it.
func (c Config) renderSigningPolicy() (string, error) {
	s := signingConfig(c.Options)
	name := SigningPolicy(c.Options)
	if s == nil || c.Role.Normalize() != v1beta1.RolePrimary || name == clause.PolicyDefault || name == clause.PolicyInsecure || name == clause.PolicyNone {
		return "", nil
	}
	if !clause.IsIdentifier(name) {
		return "", fmt.Errorf("dnssec.signing.policy: %q is not a name for a dnssec-policy", name)
	}
	keys, err := policyKeys(s)
	if err != nil {
		return "", err
	}
	if most := c.Release.MaxNSEC3Iterations(); c.Release.IsSupported() && ptr.Deref(s.NSEC3, false) && ptr.Deref(s.NSEC3Iterations, 0) > most {
		return "", fmt.Errorf("dnssec.signing.nsec3Iterations: BIND %s takes at most %d", c.Release, most)
	}
	return fmt.Sprintf("dnssec-policy %q {\n\tkeys { %s };\n%s};\n", name, keys, nsec3(s)), nil
}

// algorithms that may sign, as named has them (RFC 8624 section 3.1 leaves out the others).
var algorithms = map[string]string{
	"": "ecdsap256sha256", "ECDSAP256SHA256": "ecdsap256sha256", "ECDSAP384SHA384": "ecdsap384sha384",
	"ED25519": "ed25519", "ED448": "ed448", "RSASHA256": "rsasha256", "RSASHA512": "rsasha512",
}

// policyKeys returns one key for everything, or one for keys and one for the zone when either is to be rolled.
func policyKeys(s *v1beta1.DNSSECSigningConfig) (string, error) {
	algorithm, ok := algorithms[strings.ToUpper(s.Algorithm)]
	if !ok {
		return "", fmt.Errorf("dnssec.signing.algorithm: %q is not one of ECDSAP256SHA256, ECDSAP384SHA384, ED25519, ED448, RSASHA256 and RSASHA512", s.Algorithm)
	}
	if s.KSKLifetime == "" && s.ZSKLifetime == "" {
		return fmt.Sprintf("csk lifetime unlimited algorithm %s;", algorithm), nil
	}
	ksk, err := parseLifetime(s.KSKLifetime)
	if err != nil {
		return "", fmt.Errorf("dnssec.signing.kskLifetime: %w", err)
	}
	zsk, err := parseLifetime(s.ZSKLifetime)
	if err != nil {
		return "", fmt.Errorf("dnssec.signing.zskLifetime: %w", err)
	}
	return fmt.Sprintf("ksk lifetime %s algorithm %s; zsk lifetime %s algorithm %s;", ksk, algorithm, zsk, algorithm), nil
}

var lifetimeForm = regexp.MustCompile(`^([0-9]{1,9})([a-z])$`)

// parseLifetime turns "90d", "3m" (of 30 days) or "8760h" into seconds as named takes them.
func parseLifetime(text string) (string, error) {
	if text == "" || text == "unlimited" {
		return "unlimited", nil
	}
	units := map[string]int64{"s": 1, "h": 60 * 60, "d": day, "w": 7 * day, "m": 30 * day, "y": 365 * day}
	found := lifetimeForm.FindStringSubmatch(strings.ToLower(text))
	if found == nil || units[found[2]] == 0 {
		return "", fmt.Errorf("%q is not a number and one of the units s, h, d, w, m (30 days) and y", text)
	}
	count, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return "", err
	}
	seconds := count * units[found[2]]
	if seconds < leastLifetime {
		return "", fmt.Errorf("%q is shorter than the 14 days that rolling a key can take", text)
	}
	if seconds > 1<<31 {
		return "unlimited", nil // The next roll would be in more than 68 years.
	}
	return strconv.FormatInt(seconds, 10), nil
}

// nsec3 has names hashed. named makes the salt itself: only its length can be given.
func nsec3(s *v1beta1.DNSSECSigningConfig) string {
	if !ptr.Deref(s.NSEC3, false) {
		return ""
	}
	return fmt.Sprintf("\tnsec3param iterations %d optout no salt-length %d;\n", ptr.Deref(s.NSEC3Iterations, 0), len(s.NSEC3Salt)/2)
}
