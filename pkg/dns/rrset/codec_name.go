package rrset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// nameCodec is for types whose rdata is a single name.
func nameCodec[R dns.RR](build func(h dns.RR_Header, name string) dns.RR, get func(R) string) rdataCodec {
	return rdataCodec{
		parse: CanonicalName,
		build: func(h dns.RR_Header, s string) (dns.RR, error) {
			name, err := SpelledName(s)
			return build(h, name), err
		},
		text: textOf(func(r R) (string, bool) { return lenientName(get(r)), true }),
	}
}

var (
	nsCodec = nameCodec(
		func(h dns.RR_Header, s string) dns.RR { return &dns.NS{Hdr: h, Ns: s} },
		func(r *dns.NS) string { return r.Ns })
	cnameCodec = nameCodec(
		func(h dns.RR_Header, s string) dns.RR { return &dns.CNAME{Hdr: h, Target: s} },
		func(r *dns.CNAME) string { return r.Target })
	ptrCodec = nameCodec(
		func(h dns.RR_Header, s string) dns.RR { return &dns.PTR{Hdr: h, Ptr: s} },
		func(r *dns.PTR) string { return r.Ptr })
	dnameCodec = nameCodec(
		func(h dns.RR_Header, s string) dns.RR { return &dns.DNAME{Hdr: h, Target: s} },
		func(r *dns.DNAME) string { return r.Target })
)

// numberedRdata holds 16-bit numbers followed by a name, as in MX and SRV records.
type numberedRdata struct {
	numbers []uint16
	name    string
}

func parseNumbered(rdata, form string, readName func(string) (string, error)) (numberedRdata, error) {
	f, err := splitFields(rdata, form)
	if err != nil {
		return numberedRdata{}, err
	}
	n := numberedRdata{numbers: make([]uint16, len(f)-1)}
	for i := range n.numbers {
		v, err := strconv.ParseUint(f[i], 10, 16)
		if err != nil {
			return numberedRdata{}, fmt.Errorf("%s %q is not a number from 0 to 65535", strings.Fields(form)[i], f[i])
		}
		n.numbers[i] = uint16(v)
	}
	n.name, err = readName(f[len(f)-1])
	return n, err
}

func (n numberedRdata) String() string { return formatNumbered(n.name, n.numbers...) }

func formatNumbered(name string, numbers ...uint16) string {
	out := make([]byte, 0, len(name)+6*len(numbers))
	for _, v := range numbers {
		out = append(strconv.AppendUint(out, uint64(v), 10), ' ')
	}
	return string(append(out, name...))
}

const (
	mxForm  = "preference name"
	srvForm = "priority weight port name"
)

var (
	mxCodec = rdataCodec{
		parse: func(s string) (string, error) {
			n, err := parseNumbered(s, mxForm, CanonicalName)
			return n.String(), err
		},
		build: func(h dns.RR_Header, s string) (dns.RR, error) {
			n, err := parseNumbered(s, mxForm, SpelledName)
			if err != nil {
				return nil, err
			}
			return &dns.MX{Hdr: h, Preference: n.numbers[0], Mx: n.name}, nil
		},
		text: textOf(func(r *dns.MX) (string, bool) {
			return formatNumbered(lenientName(r.Mx), r.Preference), true
		}),
	}
	srvCodec = rdataCodec{
		parse: func(s string) (string, error) {
			n, err := parseNumbered(s, srvForm, CanonicalName)
			return n.String(), err
		},
		build: func(h dns.RR_Header, s string) (dns.RR, error) {
			n, err := parseNumbered(s, srvForm, SpelledName)
			if err != nil {
				return nil, err
			}
			return &dns.SRV{Hdr: h, Priority: n.numbers[0], Weight: n.numbers[1], Port: n.numbers[2], Target: n.name}, nil
		},
		text: textOf(func(r *dns.SRV) (string, bool) {
			return formatNumbered(lenientName(r.Target), r.Priority, r.Weight, r.Port), true
		}),
	}
)
