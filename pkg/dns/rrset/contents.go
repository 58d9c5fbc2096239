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
	check := contentChecks[rrtype]
	if check == nil {
		return nil
	}
	rr, err := ToRR(Key{Name: ".", Type: rrtype}, 0, rdata)
	if err != nil {
		return err
	}
	return check(rr)
}

// contentChecks are the checks by type, of RRs that have the Go type of miekg/dns.
var contentChecks = map[uint16]func(dns.RR) error{
	dns.TypeDS:     checkOf(func(r *dns.DS) error { return checkDigest(dns.TypeDS, r.DigestType, r.Digest) }),
	dns.TypeDLV:    checkOf(func(r *dns.DLV) error { return checkDigest(dns.TypeDLV, r.DigestType, r.Digest) }),
	dns.TypeTA:     checkOf(func(r *dns.TA) error { return checkDigest(dns.TypeTA, r.DigestType, r.Digest) }),
	dns.TypeSSHFP:  checkOf(func(r *dns.SSHFP) error { return checkDigest(dns.TypeSSHFP, r.Type, r.FingerPrint) }),
	dns.TypeZONEMD: checkOf(func(r *dns.ZONEMD) error { return checkDigest(dns.TypeZONEMD, r.Hash, r.Digest) }),
	dns.TypeHTTPS:  checkOf(func(r *dns.HTTPS) error { return checkParameters(r.Value) }),
	dns.TypeSVCB:   checkOf(func(r *dns.SVCB) error { return checkParameters(r.Value) }),
	dns.TypeTLSA:   checkOf(func(r *dns.TLSA) error { return checkEnd(r.Certificate, "usage, selector and matching type") }),
	dns.TypeSMIMEA: checkOf(func(r *dns.SMIMEA) error { return checkEnd(r.Certificate, "usage, selector and matching type") }),
	dns.TypeCERT:   checkOf(func(r *dns.CERT) error { return checkEnd(r.Certificate, "type, key tag and algorithm") }),
	dns.TypeNAPTR: checkOf(func(r *dns.NAPTR) error {
		text, _, err := nextString(`"` + r.Regexp + `"`)
		if err == nil {
			_, err = CheckSubstitution(text)
		}
		return err
	}),
}

func checkOf[R dns.RR](check func(R) error) func(dns.RR) error {
	return func(rr dns.RR) error {
		if r, ok := rr.(R); ok {
			return check(r)
		}
		return nil
	}
}

// checkEnd refuses data that ends behind its numbers.
func checkEnd(data, numbers string) error {
	if data == "" {
		return fmt.Errorf("nothing follows %s", numbers)
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
			if len(p.Code) == 0 {
				return errors.New("mandatory names no parameter; name some, such as mandatory=alpn, or leave it out (RFC 9460 section 8)")
			}
			for i, key := range p.Code {
				if slices.Contains(p.Code[:i], key) {
					return fmt.Errorf("mandatory lists %s twice (RFC 9460 section 8)", key)
				}
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
