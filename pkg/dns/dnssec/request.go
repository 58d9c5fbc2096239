package dnssec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Request is what a zone asks its parent for by CDS and CDNSKEY records (RFC 7344, RFC 8078).
type Request struct {
	// Keys are the names (EntryPoints) of the keys that are to have DS records, in ascending order. Each of them alone vouches for all keys of
	// the zone.
	Keys []string
	// Removes is true if the zone asks for no DS records at all (RFC 8078 section 4).
	Removes bool
}

// Requested judges what a zone asks for. apex has its DNSKEY, CDS and CDNSKEY records with their signatures; a zone without CDS and CDNSKEY
// records asks for nothing. The anchors are the DS records that the parent has. They have to vouch for the zone, and for the request by one
// of their keys (RFC 7344 section 4.1). Without any, only the asked for keys vouch for both: the caller must know by other means whose
// records these are (RFC 8078 section 3). An error says why the parent has to stay as it is.
func Requested(zone string, apex, anchors []dns.RR, clock Clock) (Request, error) {
	r := &requester{zone: canonical(zone), apex: apex, clock: clock, work: &work{}}
	all := groupRecords(apex, r.zone)
	for _, rrtype := range []uint16{dns.TypeCDS, dns.TypeCDNSKEY} {
		if s := all.find(r.zone, rrtype); s != nil {
			r.sets = append(r.sets, s)
		}
	}
	asked, removes, err := r.read(all.find(r.zone, dns.TypeDNSKEY))
	if len(anchors) == 0 {
		for _, key := range asked {
			anchors = append(anchors, key)
		}
	}
	if len(anchors) == 0 || err != nil {
		return Request{Removes: removes && err == nil}, err
	}
	if err := r.authenticate(anchors); err != nil || len(r.sets) == 0 || removes {
		return Request{Removes: removes && err == nil}, err
	}
	request := Request{}
	for _, key := range asked {
		if r.vouches(key) == nil {
			request.Keys = append(request.Keys, dsData(key, dns.SHA256))
		}
	}
	if len(request.Keys) == 0 {
		return Request{}, errors.New("no key that the CDS records name has signed the DNSKEY records")
	}
	slices.Sort(request.Keys)
	return request, nil
}

// requester judges one request.
type requester struct {
	zone  string
	apex  []dns.RR
	clock Clock
	work  *work
	// sets are the CDS and CDNSKEY RRsets that there are.
	sets sets
}

// read returns the key-signing keys of the zone that are to have DS records, or that there are to be none.
func (r *requester) read(own *set) (asked []*dns.DNSKEY, removes bool, err error) {
	var keys []*dns.DNSKEY
	for _, s := range append(sets{own}, r.sets...) {
		keys = append(keys, keysIn(s)...)
	}
	points := EntryPointsOf(keys)
	var said [][]string
	for _, s := range r.sets {
		names, removal := namesIn(s, points)
		if removal && len(s.records) > 1 {
			return nil, false, fmt.Errorf("the %s records ask for DS records and for the removal of all at once", rrset.TypeName(s.Type))
		}
		removes, said = removal, append(said, names)
	}
	if len(said) > 1 && !slices.Equal(said[0], said[1]) {
		return nil, false, errors.New("the CDS and CDNSKEY records do not ask for the same keys")
	}
	if len(said) == 0 || removes {
		return nil, removes, nil
	}
	for _, key := range keysIn(own) {
		if isEntryPoint(key) && slices.Contains(said[0], dsData(key, dns.SHA256)) {
			asked = append(asked, key)
		}
	}
	if len(asked) == 0 {
		return nil, false, errors.New("the CDS records name no key-signing key of the zone")
	}
	return asked, false, nil
}

// removal is the name of the request for no DS records, which has algorithm 0 (RFC 8078 section 4).
const removal = "removal"

// namesIn are the names of the keys that a CDS or CDNSKEY RRset is about, in ascending order.
func namesIn(s *set, points EntryPoints) (names []string, removes bool) {
	for _, rr := range s.records {
		name := ""
		switch rr := rr.(type) {
		case *dns.CDS:
			_, _, data := rrset.FromRR(&dns.DS{Hdr: dns.RR_Header{Name: s.Name, Rrtype: dns.TypeDS, Class: dns.ClassINET}, KeyTag: rr.KeyTag, Algorithm: rr.Algorithm, DigestType: rr.DigestType, Digest: rr.Digest})
			if name = points.Name(data); rr.Algorithm == 0 {
				name, removes = removal, true
			}
		case *dns.CDNSKEY:
			if name = dsData(keyOf(rr), dns.SHA256); rr.Algorithm == 0 {
				name, removes = removal, true
			}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), removes
}

// keysIn are the keys in a DNSKEY or CDNSKEY RRset; none if there is no RRset.
func keysIn(s *set) (keys []*dns.DNSKEY) {
	if s == nil {
		return nil
	}
	for _, rr := range s.records {
		switch rr := rr.(type) {
		case *dns.DNSKEY:
			keys = append(keys, rr)
		case *dns.CDNSKEY:
			keys = append(keys, keyOf(rr))
		}
	}
	return keys
}

func keyOf(rr *dns.CDNSKEY) *dns.DNSKEY {
	key := rr.DNSKEY
	key.Hdr.Rrtype = dns.TypeDNSKEY
	return &key
}

// isEntryPoint is true for keys that DS records may name (RFC 4034 section 2.1.1).
func isEntryPoint(key *dns.DNSKEY) bool { return isUsable(key) && key.Flags&dns.SEP != 0 }

// authenticate has the anchors vouch for the zone's keys, and keys that they name for the request.
func (r *requester) authenticate(anchors []dns.RR) error {
	if err := r.vouches(anchors...); err != nil {
		return err
	}
	supported, f := supportedAnchors(anchors, r.zone)
	if f != nil {
		return f
	}
	v := newVerifier(r.zone, map[keyID][]*dns.DNSKEY{}, r.clock, r.work)
	keys, _ := keysOf(r.zone, r.apex)
	if f := keys.name(v, supported); f != nil {
		return f
	}
	for _, s := range r.sets {
		if f := v.verify(s); f != nil {
			return fmt.Errorf("no key with a DS record vouches for the request: %w", f)
		}
	}
	return nil
}

// vouches returns why anchors do not vouch for the zone's keys.
func (r *requester) vouches(anchors ...dns.RR) error {
	switch v := trust(r.zone, r.apex, anchors, r.clock, r.work).verdict; v.Security {
	case Secure, Expiring:
		return nil
	default:
		return errors.New(v.Detail)
	}
}
