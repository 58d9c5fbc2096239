package dnssec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// asking makes the apex of a zone whose keys sign the DNSKEY RRset, and whose CDS and CDNSKEY records are signed by some of them.
func asking(t *testing.T, keys, signers, requesters []signingKey, request ...string) (apex []dns.RR) {
	t.Helper()
	var set []dns.RR
	for _, key := range keys {
		set = append(set, key.DNSKEY)
	}
	apex = slices.Clone(set)
	for _, key := range signers {
		apex = append(apex, key.sign(t, set, 10*day))
	}
	for _, rrtype := range []string{"CDS", "CDNSKEY"} {
		var lines []string
		for _, line := range request {
			if strings.HasPrefix(line, rrtype+" ") {
				lines = append(lines, "example. 60 IN "+line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		set := records(t, strings.Join(lines, "\n")+"\n")
		apex = append(apex, set...)
		for _, key := range requesters {
			apex = append(apex, key.sign(t, set, 10*day))
		}
	}
	return apex
}

func cds(key signingKey, digest uint8) string {
	ds := key.ToDS(digest)
	return fmt.Sprintf("CDS %d %d %d %s", ds.KeyTag, ds.Algorithm, ds.DigestType, ds.Digest)
}

func cdnskey(key signingKey) string {
	return fmt.Sprintf("CDNSKEY %d %d %d %s", key.Flags, key.Protocol, key.Algorithm, key.PublicKey)
}

// TestRequested: a parent follows what a key with a DS record vouches for, and what leaves the zone with a chain (RFC 7344 section 4.1, RFC
// 8078).
func TestRequested(t *testing.T) {
	const zone, remove, removeKey = "example.", "CDS 0 0 0 00", "CDNSKEY 0 3 0 AA=="
	old, next, stranger := newSigningKey(t, zone, dns.ED25519, 257), newSigningKey(t, zone, dns.ECDSAP256SHA256, 257), newSigningKey(t, zone, dns.ED25519, 257)
	zsk := newSigningKey(t, zone, dns.ED25519, 256)
	all := func(keys ...signingKey) []signingKey { return keys }
	ds := func(keys ...signingKey) (set []dns.RR) {
		for _, key := range keys {
			set = append(set, key.ToDS(dns.SHA256))
		}
		return set
	}
	for name, c := range map[string]struct {
		apex, anchors []dns.RR
		want          []signingKey
		removes       bool
		err           string
	}{
		"the first record":            {apex: asking(t, all(old), all(old), all(old), cds(old, 2)), want: all(old)},
		"by CDNSKEY":                  {apex: asking(t, all(old), all(old), all(old), cdnskey(old)), want: all(old)},
		"by both, with other digests": {apex: asking(t, all(old), all(old), all(old), cds(old, 4), cdnskey(old)), want: all(old)},
		"nothing":                     {apex: asking(t, all(old), all(old), nil)},
		"nothing, with a chain":       {apex: asking(t, all(old), all(old), nil), anchors: ds(old)},
		"nothing, without a chain":    {apex: asking(t, all(next), all(next), nil), anchors: ds(old), err: "has no usable key"},
		"a roll-over":                 {apex: asking(t, all(old, next), all(old, next), all(old, next), cds(next, 2)), anchors: ds(old), want: all(next)},
		"both keys":                   {apex: asking(t, all(old, next), all(old, next), all(old), cds(next, 2), cds(old, 2)), anchors: ds(old), want: all(old, next)},
		"a key that does not sign":    {apex: asking(t, all(old, next), all(old), all(old), cds(next, 2)), anchors: ds(old), err: "no key that the CDS records name has signed"},
		"beside one that does not":    {apex: asking(t, all(old, next), all(old), all(old), cds(next, 2), cds(old, 2)), anchors: ds(old), want: all(old)},
		"vouched for by the new key":  {apex: asking(t, all(old, next), all(old, next), all(next), cds(next, 2)), anchors: ds(old), err: "no key with a DS record vouches"},
		"vouched for by a ZSK":        {apex: asking(t, all(old, next, zsk), all(old, next), all(zsk), cds(next, 2)), anchors: ds(old), err: "no key with a DS record vouches"},
		"unsigned":                    {apex: asking(t, all(old), all(old), nil, cds(old, 2)), err: "has no signature"},
		"one of both unsigned":        {apex: append(asking(t, all(old), all(old), all(old), cds(old, 2)), records(t, zone+" 60 IN "+cdnskey(old)+"\n")...), err: "has no signature"},
		"other keys than the chain":   {apex: asking(t, all(next), all(next), all(next), cds(next, 2)), anchors: ds(old), err: "has no usable key"},
		"a key that is not there":     {apex: asking(t, all(old), all(old), all(old), cds(stranger, 2)), err: "name no key-signing key"},
		"a zone-signing key":          {apex: asking(t, all(old, zsk), all(old, zsk), all(old), cds(zsk, 2)), err: "name no key-signing key"},
		"CDS against CDNSKEY":         {apex: asking(t, all(old, next), all(old, next), all(old), cds(next, 2), cdnskey(old)), anchors: ds(old), err: "do not ask for the same keys"},
		"CDS against removal":         {apex: asking(t, all(old), all(old), all(old), cds(old, 2), removeKey), anchors: ds(old), err: "do not ask for the same keys"},
		"removal":                     {apex: asking(t, all(old), all(old), all(old), remove, removeKey), anchors: ds(old), removes: true},
		"removal by CDS":              {apex: asking(t, all(old), all(old), all(old), remove), anchors: ds(old), removes: true},
		"removal of nothing":          {apex: asking(t, all(old), all(old), all(old), remove), removes: true},
		"removal by another key":      {apex: asking(t, all(old, next), all(old, next), all(next), remove), anchors: ds(old), err: "no key with a DS record vouches"},
		"removal and a key":           {apex: asking(t, all(old), all(old), all(old), remove, cds(old, 2)), anchors: ds(old), err: "at once"},
		"a replayed request":          {apex: replayed(t, old, next, remove), anchors: ds(old), err: "expired"},
	} {
		got, err := Requested(zone, c.apex, c.anchors, at)
		var want []string
		for _, key := range c.want {
			want = append(want, dsData(key.DNSKEY, dns.SHA256))
		}
		slices.Sort(want)
		if !slices.Equal(got.Keys, want) || got.Removes != c.removes {
			t.Errorf("%s: it asks for %+v, want %v, removal %t", name, got, want, c.removes)
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// replayed is a request whose signature has expired, in a zone that is signed now.
func replayed(t *testing.T, old, next signingKey, request string) []dns.RR {
	apex := asking(t, []signingKey{old, next}, []signingKey{old, next}, nil, request)
	set := apex[len(apex)-1:]
	return append(apex, old.sign(t, set, -time.Hour))
}
