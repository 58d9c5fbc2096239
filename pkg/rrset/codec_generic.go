package rrset

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

const soaForm = "mname rname serial refresh retry expire minimum"

// soaCodec exists so that an SOA in a transfer or an update has one form too; desired zones hold it as an SOA value.
var soaCodec = codec{
	parse: func(s string) (string, error) {
		soa, err := ParseSOA(s)
		return soa.Rdata(), err
	},
	build: func(h dns.RR_Header, s string) (dns.RR, error) {
		soa, err := ParseSOA(s)
		if err != nil {
			return nil, err
		}
		return &dns.SOA{Hdr: h, Ns: soa.MName, Mbox: soa.RName, Serial: soa.Serial,
			Refresh: soa.Refresh, Retry: soa.Retry, Expire: soa.Expire, Minttl: soa.Minimum}, nil
	},
	text: func(rr dns.RR) (string, bool) {
		r, ok := rr.(*dns.SOA)
		if !ok {
			return "", false
		}
		return SOA{MName: lenientName(r.Ns), RName: lenientName(r.Mbox), Serial: r.Serial,
			Refresh: r.Refresh, Retry: r.Retry, Expire: r.Expire, Minimum: r.Minttl}.Rdata(), true
	},
}

// ParseSOA reads SOA rdata in presentation form. The TTL is not part of it and stays 0.
func ParseSOA(rdata string) (SOA, error) {
	f, err := fields(rdata, soaForm)
	if err != nil {
		return SOA{}, err
	}
	var s SOA
	if s.MName, err = CanonicalName(f[0]); err != nil {
		return SOA{}, err
	}
	if s.RName, err = CanonicalName(f[1]); err != nil {
		return SOA{}, err
	}
	for i, p := range []*uint32{&s.Serial, &s.Refresh, &s.Retry, &s.Expire, &s.Minimum} {
		v, err := strconv.ParseUint(f[i+2], 10, 32)
		if err != nil {
			return SOA{}, fmt.Errorf("%s %q is not a number from 0 to 4294967295", strings.Fields(soaForm)[i+2], f[i+2])
		}
		*p = uint32(v)
	}
	return s, nil
}

// genericCodec leaves a type to miekg/dns.
func genericCodec(rrtype uint16) codec {
	build := func(h dns.RR_Header, rdata string) (dns.RR, error) {
		if strings.ContainsAny(rdata, "\r\n") {
			return nil, errors.New("rdata is one line")
		}
		h.Name = dns.Fqdn(h.Name)
		rr, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", h.Name, h.Ttl, dns.Type(rrtype), rdata))
		switch {
		case err != nil:
			return nil, err
		case rr == nil:
			return nil, errors.New("there is no rdata")
		}
		return repack(rr)
	}
	return codec{
		parse: func(s string) (string, error) {
			rr, err := build(dns.RR_Header{Name: "."}, s)
			if err != nil {
				return "", err
			}
			_, _, rdata := FromRR(rr)
			return rdata, nil
		},
		build: build,
	}
}

// repack sends an RR through its wire form, where all spellings of the same data meet.
func repack(rr dns.RR) (dns.RR, error) {
	wire := make([]byte, dns.MaxMsgSize)
	n, err := dns.PackRR(rr, wire, 0, nil, false)
	if err != nil {
		return nil, err
	}
	again, _, err := dns.UnpackRR(wire[:n], 0)
	return again, err
}

// fromRaw reads raw rdata (RFC 3597) of a type that has a form of its own.
func fromRaw(raw *dns.RFC3597) (dns.RR, bool) {
	if dns.TypeToRR[raw.Hdr.Rrtype] == nil {
		return nil, false
	}
	wire, err := hex.DecodeString(raw.Rdata)
	if err != nil || len(wire) > maxRdata {
		return nil, false
	}
	h := raw.Hdr
	h.Rdlength = uint16(len(wire)) //nolint:gosec // bounded above
	rr, n, err := dns.UnpackRRWithHeader(h, wire, 0)
	if err != nil || n != len(wire) {
		return nil, false
	}
	if _, same := rr.(*dns.RFC3597); same {
		return nil, false
	}
	return rr, true
}
