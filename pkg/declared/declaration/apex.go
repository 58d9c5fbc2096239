package declaration

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// SOA timers, in seconds, where the zone sets none.
const (
	defaultRefresh  = 3600
	defaultRetry    = 600
	defaultExpire   = 604800
	defaultNegative = 86400
)

// Apex is what a zone object itself declares.
type Apex struct {
	Name string
	TTL  uint32
	SOA  rrset.SOA
	// Servers are the names of the zone's own NS RRset, in the order of the spec.
	Servers []string
	// Addresses holds the declared addresses of name servers.
	Addresses map[string][]netip.Addr
}

// ReadApex reads a zone's spec. The error joins everything that is wrong with it, each part naming its field.
func ReadApex(zone *v1beta1.DNSZone) (Apex, error) {
	a, spec := Apex{Addresses: map[string][]netip.Addr{}}, &zone.Spec
	if problem := lenient.SpecProblem(zone); problem != "" {
		return a, errors.New(problem)
	}
	var err error
	if a.Name, err = ZoneName(spec.ZoneName); err != nil {
		return a, fmt.Errorf("spec.zoneName: %w", err)
	}
	var errs []error
	if a.TTL, err = effectiveTTL(spec.TTL, uint32(v1beta1.DefaultTTL)); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, a.readSOA(&spec.SOARecord), a.readServers(spec), checkGuard(spec.Guard, a.Name))
	return a, errors.Join(errs...)
}

// checkGuard reads the names of a guard, all of which have to be in the zone.
func checkGuard(guard *v1beta1.ZoneGuard, zone string) error {
	if guard == nil {
		return nil
	}
	var errs []error
	for i, name := range guard.NeverEmpty {
		if _, err := OwnerName(name, zone); err != nil {
			errs = append(errs, fmt.Errorf("spec.guard.neverEmpty[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// TTLOf is the TTL of what a zone has that sets none of its own; the default if the zone's cannot be read.
func TTLOf(zone *v1beta1.DNSZone) time.Duration {
	ttl, err := effectiveTTL(zone.Spec.TTL, uint32(v1beta1.DefaultTTL))
	if err != nil {
		ttl = uint32(v1beta1.DefaultTTL)
	}
	return time.Duration(ttl) * time.Second
}

// ZoneName is the canonical name of a zone, which may be written with or without the final dot. The root is an error.
func ZoneName(name string) (string, error) {
	c, err := rrset.CanonicalName(name)
	switch {
	case err != nil:
		return "", err
	case c == ".":
		return "", errors.New("the root cannot be a zone here")
	case strings.HasPrefix(c, "*."):
		return "", fmt.Errorf("%q is a wildcard; a zone has a name of its own", name)
	}
	return c, nil
}

// effectiveTTL is the TTL of a spec, or the one that applies when it sets none.
func effectiveTTL(ttl *int64, otherwise uint32) (uint32, error) {
	switch {
	case ttl == nil:
		return otherwise, nil
	case *ttl < 0 || *ttl > rrset.MaxTTL:
		return 0, fmt.Errorf("spec.ttl: %d is not from 0 to %d seconds (RFC 2181 section 8)", *ttl, rrset.MaxTTL)
	}
	return uint32(*ttl), nil
}

func (a *Apex) readSOA(spec *v1beta1.SOARecord) error {
	mname, _, _, errM := resolveHost("spec.soaRecord.primaryNs", spec.PrimaryNS, a.Name)
	if errM == nil && mname == "." {
		errM = errors.New(`spec.soaRecord.primaryNs: "." is the root of DNS and no host`)
	}
	rname, errR := mailboxName(spec.AdminEmail)
	if errR != nil {
		errR = fmt.Errorf("spec.soaRecord.adminEmail: %w", errR)
	}
	a.SOA = rrset.SOA{MName: mname, RName: rname, TTL: a.TTL}
	negative := int64(defaultNegative)
	if spec.NegativeTTL != nil {
		negative = *spec.NegativeTTL
	}
	errs := []error{errM, errR}
	for _, f := range []struct {
		name             string
		value, otherwise int64
		to               *uint32
	}{
		{"serial", spec.Serial, 0, &a.SOA.Serial},
		{"refresh", spec.Refresh, defaultRefresh, &a.SOA.Refresh},
		{"retry", spec.Retry, defaultRetry, &a.SOA.Retry},
		{"expire", spec.Expire, defaultExpire, &a.SOA.Expire},
		{"negativeTtl", negative, 0, &a.SOA.Minimum},
	} {
		limit := int64(rrset.MaxTTL)
		if f.name == "serial" {
			limit = math.MaxUint32
		}
		f.value = cmp.Or(f.value, f.otherwise)
		if f.value < 0 || f.value > limit {
			errs = append(errs, fmt.Errorf("spec.soaRecord.%s: %d is not from 0 to %d", f.name, f.value, limit))
			continue
		}
		*f.to = uint32(f.value) //nolint:gosec // bounded above
	}
	return errors.Join(errs...)
}

// mailboxName makes the SOA's RNAME of a mail address (RFC 1035 section 8): admin@example.com and admin@example.com. become
// admin.example.com., first.last@example.com becomes first\.last.example.com. What holds no "@" is an RNAME already. It is never relative
// to the zone.
func mailboxName(address string) (string, error) {
	local, domain, isAddress := strings.Cut(address, "@")
	switch {
	case address == "":
		return "", errors.New("there is no address; write one such as admin@example.com")
	case !isAddress:
		return rrset.CanonicalName(address)
	case local == "" || domain == "" || strings.Contains(domain, "@"):
		return "", fmt.Errorf("%q is not a mail address such as admin@example.com", address)
	}
	var name strings.Builder
	for _, c := range []byte(local) {
		if c >= 0x80 {
			return "", fmt.Errorf("%q: the part before the @ has to be ASCII", address)
		}
		if c <= ' ' || c == 0x7f {
			return "", fmt.Errorf("%q: the part before the @ has a blank or control character", address)
		}
		if (c < '0' || c > '9') && !isLetter(c) {
			name.WriteByte('\\')
		}
		name.WriteByte(c)
	}
	domain, err := rrset.CanonicalName(domain)
	if err != nil {
		return "", err
	}
	return rrset.CanonicalName(name.String() + "." + strings.TrimPrefix(domain, "."))
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }
