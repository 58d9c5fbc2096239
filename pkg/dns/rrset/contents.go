package rrset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// digestSizes are the bytes of digests by type and algorithm, of the types that BIND checks.
var digestSizes = map[uint16]map[uint8]int{
	dns.TypeDS:     dsSizes, // RFC 4034 section 5.1.3, RFC 4509, RFC 6605
	dns.TypeDLV:    dsSizes,
	dns.TypeTA:     dsSizes,
	dns.TypeSSHFP:  {1: 20, 2: 32}, // RFC 4255, RFC 6594
	dns.TypeZONEMD: {1: 48, 2: 64}, // RFC 8976 section 2.2.3
}

var dsSizes = map[uint8]int{dns.SHA1: 20, dns.SHA256: 32, dns.SHA384: 48}

// CheckContents refuses canonical rdata that has the form of its type and cannot be right: servers refuse it, and with it the whole update.
func CheckContents(rrtype uint16, rdata string) error {
	if digestSizes[rrtype] == nil && rrtype != dns.TypeHTTPS && rrtype != dns.TypeSVCB {
		return nil
	}
	rr, err := ToRR(Key{Name: ".", Type: rrtype}, 0, rdata)
	if err != nil {
		return err
	}
	switch rr := rr.(type) {
	case *dns.DS:
		return checkDigest(rrtype, rr.DigestType, rr.Digest)
	case *dns.DLV:
		return checkDigest(rrtype, rr.DigestType, rr.Digest)
	case *dns.TA:
		return checkDigest(rrtype, rr.DigestType, rr.Digest)
	case *dns.SSHFP:
		return checkDigest(rrtype, rr.Type, rr.FingerPrint)
	case *dns.ZONEMD:
		return checkDigest(rrtype, rr.Hash, rr.Digest)
	case *dns.HTTPS:
		return checkParameters(rr.Value)
	case *dns.SVCB:
		return checkParameters(rr.Value)
	}
	return nil
}

func checkDigest(rrtype uint16, algorithm uint8, digits string) error {
	if size := digestSizes[rrtype][algorithm]; size > 0 && len(digits) != 2*size {
		return fmt.Errorf("the digest has %d bytes, and one of type %d has %d", len(digits)/2, algorithm, size)
	}
	return nil
}

// checkParameters checks what parameters of a service say together (RFC 9460 sections 7.1.1 and 8, RFC 9461 section 5).
func checkParameters(parameters []dns.SVCBKeyValue) error {
	has := func(key dns.SVCBKey) bool {
		return slices.ContainsFunc(parameters, func(p dns.SVCBKeyValue) bool { return p.Key() == key })
	}
	for _, parameter := range parameters {
		switch p := parameter.(type) {
		case *dns.SVCBMandatory:
			for _, key := range p.Code {
				if key == dns.SVCB_MANDATORY || !has(key) {
					return fmt.Errorf("mandatory lists %s, which is no other parameter of this record (RFC 9460 section 8)", key)
				}
			}
		case *dns.SVCBAlpn:
			if len(p.Alpn) == 0 || slices.Contains(p.Alpn, "") {
				return errors.New("alpn has an empty protocol; write one such as h2, or leave alpn out (RFC 9460 section 7.1.1)")
			}
		case *dns.SVCBNoDefaultAlpn:
			if !has(dns.SVCB_ALPN) {
				return errors.New("no-default-alpn needs alpn beside it (RFC 9460 section 7.1.1)")
			}
		case *dns.SVCBDoHPath:
			if !strings.HasPrefix(p.Template, "/") || !strings.Contains(p.Template, "dns") || !strings.Contains(p.Template, "{") {
				return errors.New("dohpath is a relative template with the variable dns, such as /dns-query{?dns} (RFC 9461 section 5)")
			}
		}
	}
	return nil
}
