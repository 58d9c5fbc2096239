package coredns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// names are RRsets by owner name.
type names map[string][]rrset.RRset

func (n names) get(name string, rrtype uint16) (rrset.RRset, bool) {
	for _, set := range n[name] {
		if set.Type == rrtype {
			return set, true
		}
	}
	return rrset.RRset{}, false
}

// keyValue is a value with its key.
type keyValue struct {
	key string
	value
}

// encode makes the values of RRsets that the zone can hold together, sorted by key.
func (l layout) encode(sets names) []keyValue {
	all := make([]rrset.RRset, 0, len(sets))
	for _, some := range sets {
		all = append(all, some...)
	}
	encoded := make([][]keyValue, len(all))
	parallel.ForRange(len(all), func(i int) { encoded[i] = l.encodeSet(sets, all[i]) })
	values := slices.Concat(encoded...)
	slices.SortFunc(values, compareByKey)
	return slices.CompactFunc(values, func(a, b keyValue) bool { return a.key == b.key })
}

func compareByKey(a, b keyValue) int { return strings.Compare(a.key, b.key) }

// encodeSet makes the values of one RRset among those of the zone. A question for a name is answered with all values below its key, of
// which those of the group of the shortest key count: a name's values are a group.
func (l layout) encodeSet(sets names, set rrset.RRset) []keyValue {
	place := l.placeOf(set.Key)
	path, size := l.pathOf(place), len(set.Rdata)
	if isExact(set.Type) {
		size *= 2
	}
	encoded := make([]keyValue, 0, size)
	for i, rdata := range set.Rdata {
		v := valueOf(set, i)
		v.TTL = set.TTL
		v.Marker = marker{Owner: l.owner, Zone: l.zone, Type: dns.Type(set.Type).String()}
		if isExact(set.Type) {
			encoded = append(encoded, keyValue{path, l.shield(sets, place, v)})
		}
		if set.Type != dns.TypePTR {
			v.Group = place
			encoded = append(encoded, keyValue{keyAt(path, set.Type, rdata), v})
		}
	}
	return encoded
}

// shield keeps a value under a name's own key from the answers for the name above it. Its key is as long as those of the values
// there, so that it has to be of their group. A value with a text is no alias to CoreDNS, and of a text that is there twice it
// takes the first; a priority that is nobody's takes no part in the weights of an SRV.
func (l layout) shield(sets names, place string, v value) value {
	above := rrset.ParentName(place)
	v.Group = above
	if !l.hasValues(sets, above) {
		return v
	}
	v.Priority, v.Text = -1, "-"
	if set, ok := sets.get(above, dns.TypeTXT); ok {
		v.Text = textOf(set, 0)
	}
	return v
}

// hasValues reports whether there are values one part below a name's key.
func (l layout) hasValues(sets names, name string) bool {
	return slices.ContainsFunc(sets[name], func(set rrset.RRset) bool { return l.placeOf(set.Key) == name && set.Type != dns.TypePTR })
}

// valueOf is the value for one rdata of an RRset that Unsupported has nothing against.
func valueOf(set rrset.RRset, i int) value {
	switch set.Type {
	case dns.TypeTXT:
		return value{Text: textOf(set, i)}
	case dns.TypeMX:
		mx := toRR[*dns.MX](set, i)
		return value{Host: mx.Mx, Priority: int(mx.Preference), Mail: true}
	case dns.TypeSRV:
		srv := toRR[*dns.SRV](set, i)
		return value{Host: srv.Target, Priority: int(srv.Priority), Weight: int(srv.Weight), Port: int(srv.Port)}
	}
	return value{Host: set.Rdata[i]}
}

func toRR[T dns.RR](set rrset.RRset, i int) T {
	rr, _ := rrset.ToRR(set.Key, set.TTL, set.Rdata[i])
	typed, _ := rr.(T) // canonical rdata of that type
	return typed
}

// textOf is the text of a TXT value, escaped as CoreDNS expects it, without the borders between strings.
func textOf(set rrset.RRset, i int) string {
	return strings.Join(toRR[*dns.TXT](set, i).Txt, "")
}

// rdataOfText is the TXT rdata that CoreDNS makes of a text: strings of 255 characters and a rest, which may be empty if there are
// others.
func rdataOfText(text string) string {
	rr := &dns.TXT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeTXT, Class: dns.ClassINET}}
	for len(text) >= 255 {
		rr.Txt, text = append(rr.Txt, text[:255]), text[255:]
	}
	rr.Txt = append(rr.Txt, text)
	_, _, rdata := rrset.FromRR(rr)
	return rdata
}

// servedWeight is the weight that CoreDNS answers with for one of several: its share of 100.
func servedWeight(weight, sum int) int {
	return max(1, int(100.0/float64(sum)*float64(weight)))
}

// canHoldWeights reports whether CoreDNS would answer with the weights of an SRV RRset: they make up 100 for each priority, or as good
// as.
func canHoldWeights(set rrset.RRset) bool {
	sums, values := map[int]int{}, make([]value, len(set.Rdata))
	for i := range values {
		values[i] = valueOf(set, i)
		sums[values[i].Priority] += values[i].Weight
	}
	return !slices.ContainsFunc(values, func(v value) bool {
		return sums[v.Priority] == 0 || servedWeight(v.Weight, sums[v.Priority]) != v.Weight
	})
}

// isMappedAddress recognizes the IPv4 address in an AAAA record, which CoreDNS takes for an A record.
func isMappedAddress(rdata string) bool {
	a, err := netip.ParseAddr(rdata)
	return err == nil && a.Is4In6()
}
