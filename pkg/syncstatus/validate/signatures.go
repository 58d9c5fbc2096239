package validate

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// signature is an RRSIG record as a zone has it: its text, of which the fields are parts. Times are as in RFC 4034 section 3.2, so that
// they compare as they are.
type signature struct {
	rdata                                 string
	covered, expires, begins, tag, signer string
}

// parseSignature splits the text of an RRSIG record.
func parseSignature(rdata string) (s signature, ok bool) {
	s.rdata = rdata
	rest := rdata
	for i := range 8 {
		var field string
		if field, rest, ok = strings.Cut(rest, " "); !ok {
			return s, false
		}
		switch i {
		case 0:
			s.covered = field
		case 4:
			s.expires = field
		case 5:
			s.begins = field
		case 6:
			s.tag = field
		case 7:
			s.signer = field
		}
	}
	return s, len(s.expires) == len(timeForm) && len(s.begins) == len(timeForm)
}

// signaturesAt yields the signatures at a name.
func signaturesAt(m *observe.Mirror, name string) iter.Seq[signature] {
	return func(yield func(signature) bool) {
		set, _ := m.Get(rrset.Key{Name: name, Type: dns.TypeRRSIG})
		for _, rdata := range set.Rdata {
			if s, ok := parseSignature(rdata); ok && !yield(s) {
				return
			}
		}
	}
}

// signaturesOf yields the signatures of an RRset.
func signaturesOf(m *observe.Mirror, k rrset.Key) iter.Seq[signature] {
	return func(yield func(signature) bool) {
		covered := dns.Type(k.Type).String()
		for s := range signaturesAt(m, k.Name) {
			if s.covered == covered && !yield(s) {
				return
			}
		}
	}
}

const timeForm = "20060102150405"

func timeText(t time.Time) string { return t.UTC().Format(timeForm) }

func parseTime(text string) time.Time {
	t, _ := time.Parse(timeForm, text)
	return t
}

// expiring is the signature of an RRset that expires first in a zone. Of several signatures of an RRset, the last one counts.
type expiring struct {
	rrset.Key
	expires string
}

// earlier chooses the one that expires first.
func (e expiring) earlier(o expiring) expiring {
	if e.expires == "" || o.expires != "" && o.expires < e.expires {
		return o
	}
	return e
}

// firstAt is the first to expire at a name.
func firstAt(m *observe.Mirror, set rrset.RRset, bound string) (first expiring) {
	var last [8]signature // by covered type: few names have more
	known := last[:0]
	for _, rdata := range set.Rdata {
		s, ok := parseSignature(rdata)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(known, func(o signature) bool { return o.covered == s.covered }); i < 0 {
			known = append(known, s)
		} else if known[i].expires < s.expires {
			known[i] = s
		}
	}
	for _, s := range known {
		k := rrset.Key{Name: set.Name, Type: dns.StringToType[s.covered]}
		if bound != "" && s.expires >= bound || k.Type != dns.TypeSOA && !holds(m, k) {
			continue
		}
		first = first.earlier(expiring{k, s.expires})
	}
	return first
}

func holds(m *observe.Mirror, k rrset.Key) bool {
	_, ok := m.Get(k)
	return ok
}

// scan is what was found in a zone's content.
type scan struct {
	mirror *observe.Mirror
	first  expiring
}

// of continues a scan with newer content. It looks at what has changed, and at everything if the first signature was renewed.
func (s scan) of(m *observe.Mirror) scan {
	if s.mirror == m {
		return s
	}
	if s.mirror != nil {
		next, renewed := s.first, false
		for name := range m.ChangedNames(s.mirror) {
			renewed = renewed || name == s.first.Name
			if set, ok := m.Get(rrset.Key{Name: name, Type: dns.TypeRRSIG}); ok && !renewed {
				next = next.earlier(firstAt(m, set, next.expires))
			}
		}
		if !renewed && s.first.expires != "" {
			return scan{m, next}
		}
	}
	var first expiring
	for set := range m.All() {
		if set.Type == dns.TypeRRSIG {
			first = first.earlier(firstAt(m, set, first.expires))
		}
	}
	return scan{m, first}
}

// verdict is what the expiry says.
func (e expiring) verdict(at limits) dnssec.Verdict {
	if e.expires == "" {
		return dnssec.Verdict{Security: dnssec.Secure}
	}
	v := dnssec.Verdict{Security: dnssec.Secure, Expires: parseTime(e.expires)}
	switch {
	case e.expires < at.now:
		v.Security, v.Code = dnssec.Bogus, dns.ExtendedErrorCodeSignatureExpired
		v.Detail = fmt.Sprintf("the signature of %s expired %s", e.Key, v.Expires.Format(time.RFC3339))
	case e.expires < at.notice:
		v.Security = dnssec.Expiring
	}
	return v
}
