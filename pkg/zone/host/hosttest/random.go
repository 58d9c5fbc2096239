package hosttest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// RandomZone makes RRsets of a zone such as people have, and some that nobody has: many types at few names, names below names, targets
// inside and outside, texts that need escapes or several strings. No CNAME has other data beside it (RFC 1034 section 3.6.2).
func RandomZone(r *rand.Rand, zone string, size int) plan.Map {
	sets := plan.Map{}
	for range size {
		name := randomName(r, zone)
		if _, alias := sets[rrset.Key{Name: name, Type: dns.TypeCNAME}]; alias {
			continue
		}
		key := rrset.Key{Name: name, Type: pick(r, dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeTXT, dns.TypeMX, dns.TypeSRV, dns.TypePTR, dns.TypeCNAME, dns.TypeCAA)}
		if key.Type == dns.TypeCNAME && (name == zone || hasData(sets, name)) {
			continue
		}
		sets[key] = randomSet(r, zone, key)
	}
	return sets
}

func hasData(sets plan.Map, name string) bool {
	for range sets.At(name) {
		return true
	}
	return false
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomName is one of some hundred names, the zone's own among them, and most below others.
func randomName(r *rand.Rand, zone string) string {
	name := zone
	for range r.IntN(4) {
		name = pick(r, "www", "app", "mail", "dns", "_sip", "_tcp", "a-b", "0", "*") + "." + name
	}
	return name
}

func randomSet(r *rand.Rand, zone string, key rrset.Key) rrset.RRset {
	n := 1 + r.IntN(3)
	if key.Type == dns.TypeCNAME {
		n = 1
	}
	var rdata []string
	for i := range n {
		rdata = append(rdata, randomRdata(r, zone, key, n, i))
	}
	return rrset.New(key, pick[uint32](r, 0, 1, 60, 300, 3600, 86400), rdata...)
}

func randomRdata(r *rand.Rand, zone string, key rrset.Key, n, i int) string {
	target := pick(r, randomName(r, zone), randomName(r, key.Name), "elsewhere.test.")
	if strings.HasPrefix(target, "*") {
		target = zone
	}
	switch key.Type {
	case dns.TypeA:
		return fmt.Sprintf("192.0.2.%d", r.IntN(20))
	case dns.TypeAAAA:
		return pick(r, fmt.Sprintf("2001:db8::%d", 1+r.IntN(20)), "::ffff:192.0.2.1")
	case dns.TypeTXT:
		text, _ := rrset.TXT(pick(r, []string{fmt.Sprintf("v=%d", r.IntN(20))}, []string{"a \"quoted\" \\ text; \xc3\xa4 \xff\x00"}, []string{strings.Repeat("x", 255), "rest"},
			[]string{"two", "strings"}, []string{""}, []string{strings.Repeat("y", 254)}, []string{strings.Repeat("z", 255)}, []string{"-"})...)
		return text
	case dns.TypeMX:
		return fmt.Sprintf("%d %s", pick(r, 0, 1, 10, 65535), target)
	case dns.TypeSRV:
		return fmt.Sprintf("%d %d %d %s", pick(r, 0, 1, 10), pick(r, 100, 100/n, 100/n+i, 33, 1, 0), pick(r, 0, 443, 65535), target)
	case dns.TypeCAA:
		return `0 issue "ca.test"`
	default:
		return target
	}
}
