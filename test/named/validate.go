package named

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Validate proves an RRset as a validating resolver does that knows a zone's DS records, in presentation format: a DNSKEY
// that one of them points to signs the DNSKEYs, and one of these signs the RRset.
func Validate(ctx context.Context, server netip.AddrPort, ds []string, name string, rrtype uint16) error {
	if len(ds) == 0 {
		return errors.New("there is no DS record")
	}
	first, err := dns.NewRR(ds[0])
	if err != nil {
		return fmt.Errorf("DS record %q: %w", ds[0], err)
	}
	zone := first.Header().Name
	keySet, keySigs, err := signedSet(ctx, server, zone, dns.TypeDNSKEY)
	if err != nil {
		return err
	}
	var keys, trusted []*dns.DNSKEY
	for _, rr := range keySet {
		key := rr.(*dns.DNSKEY)
		keys = append(keys, key)
		if slices.ContainsFunc(ds, func(text string) bool { return pointsTo(text, key) }) {
			trusted = append(trusted, key)
		}
	}
	if err := verify(keySet, keySigs, trusted); err != nil {
		return fmt.Errorf("%s, the keys of %s by the DS records %q: %w", server, zone, ds, err)
	}
	set, sigs, err := signedSet(ctx, server, name, rrtype)
	if err != nil {
		return err
	}
	if err := verify(set, sigs, keys); err != nil {
		return fmt.Errorf("%s, %s %s: %w", server, name, dns.TypeToString[rrtype], err)
	}
	return nil
}

func pointsTo(text string, key *dns.DNSKEY) bool {
	rr, err := dns.NewRR(text)
	want, ok := rr.(*dns.DS)
	if err != nil || !ok {
		return false
	}
	have := key.ToDS(want.DigestType)
	return have != nil && have.KeyTag == want.KeyTag && have.Algorithm == want.Algorithm && strings.EqualFold(have.Digest, want.Digest)
}

// signedSet asks for an RRset with its signatures.
func signedSet(ctx context.Context, server netip.AddrPort, name string, rrtype uint16) (set []dns.RR, sigs []*dns.RRSIG, err error) {
	m := new(dns.Msg)
	m.SetQuestion(name, rrtype)
	m.SetEdns0(4096, true)
	reply, _, err := (&dns.Client{Net: "tcp", Timeout: 5 * time.Second}).ExchangeContext(ctx, m, server.String())
	if err != nil {
		return nil, nil, err
	}
	for _, rr := range reply.Answer {
		switch sig, isSig := rr.(*dns.RRSIG); {
		case isSig && sig.TypeCovered == rrtype:
			sigs = append(sigs, sig)
		case rr.Header().Rrtype == rrtype:
			set = append(set, rr)
		}
	}
	if len(set) == 0 {
		return nil, nil, fmt.Errorf("%s has no %s %s (%s)", server, name, dns.TypeToString[rrtype], dns.RcodeToString[reply.Rcode])
	}
	return set, sigs, nil
}

// Keys returns the keys of a zone on a server, by key tag.
func Keys(ctx context.Context, server netip.AddrPort, zone string) (map[uint16]*dns.DNSKEY, error) {
	m := new(dns.Msg).SetQuestion(zone, dns.TypeDNSKEY)
	reply, _, err := (&dns.Client{Net: "tcp", Timeout: 5 * time.Second}).ExchangeContext(ctx, m, server.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	keys := map[uint16]*dns.DNSKEY{}
	for _, rr := range reply.Answer {
		if key, ok := rr.(*dns.DNSKEY); ok {
			keys[key.KeyTag()] = key
		}
	}
	return keys, nil
}

// verify looks for a signature that holds now.
func verify(set []dns.RR, sigs []*dns.RRSIG, keys []*dns.DNSKEY) error {
	problem := errors.New("no signature by a known key")
	for _, sig := range sigs {
		for _, key := range keys {
			if key.KeyTag() != sig.KeyTag || key.Algorithm != sig.Algorithm {
				continue
			}
			if !sig.ValidityPeriod(time.Now()) {
				problem = errors.New("the signature has expired")
				continue
			}
			if problem = sig.Verify(key, set); problem == nil {
				return nil
			}
		}
	}
	return problem
}
