package rrset

import (
	"cmp"
	"errors"
	"fmt"
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
	dns.TypeRKEY: checkOf(func(r *dns.RKEY) error {
		if r.Flags != 0 {
			return errors.New("the flags of an RKEY are 0")
		}
		return checkEnd(r.PublicKey, "flags, protocol and algorithm")
	}),
	dns.TypeKEY: checkOf(func(r *dns.KEY) error {
		const noKey = 0xc000 // RFC 2535 section 3.1.2
		if r.Flags&noKey == noKey {
			return checkNone(r.PublicKey)
		}
		return checkEnd(r.PublicKey, "flags, protocol and algorithm")
	}),
	dns.TypeHTTPS: checkBytes(checkService),
	dns.TypeSVCB:  checkBytes(checkService),
	dns.TypeIPSECKEY: checkOf(func(r *dns.IPSECKEY) error {
		return cmp.Or(checkGateway(r.GatewayType), checkEnd(r.PublicKey, "precedence, gateway type, algorithm and gateway"))
	}),
	dns.TypeX25: checkOf(func(r *dns.X25) error {
		if len(r.PSDNAddress) < 4 || strings.Trim(r.PSDNAddress, "0123456789") != "" {
			return errors.New("an X.25 address has four digits or more (RFC 1183 section 3.1)")
		}
		return nil
	}),
	dns.TypeTLSA:   checkOf(func(r *dns.TLSA) error { return checkEnd(r.Certificate, "usage, selector and matching type") }),
	dns.TypeSMIMEA: checkOf(func(r *dns.SMIMEA) error { return checkEnd(r.Certificate, "usage, selector and matching type") }),
	dns.TypeCERT:   checkOf(func(r *dns.CERT) error { return checkEnd(r.Certificate, "type, key tag and algorithm") }),
	dns.TypeNAPTR: checkOf(func(r *dns.NAPTR) error {
		text, _, err := nextString(`"` + r.Regexp + `"`)
		if err == nil {
			err = CheckSubstitution(text)
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

// checkGateway refuses types of gateways that are not in use (RFC 4025 section 2.3).
func checkGateway(kind uint8) error {
	if kind > dns.IPSECGatewayHost {
		return fmt.Errorf("%d is no type from 0 to %d", kind, dns.IPSECGatewayHost)
	}
	return nil
}

func checkBytes(check func([]byte) error) func(dns.RR) error {
	return func(rr dns.RR) error {
		raw, err := rdataOf(rr)
		if err != nil {
			return err
		}
		return check(raw)
	}
}

// checkEnd refuses data that ends behind its numbers.
func checkEnd(data, numbers string) error {
	if data == "" {
		return fmt.Errorf("nothing follows %s", numbers)
	}
	return nil
}

func checkNone(key string) error {
	if key != "" {
		return errors.New("the flags say that there is no key")
	}
	return nil
}

func checkDigest(rrtype uint16, algorithm uint8, digits string) error {
	if digits == "" && rrtype != dns.TypeSSHFP { // BIND takes that of a type that it does not know.
		return errors.New("there is no digest")
	}
	const least = 12 // bytes, of any algorithm (RFC 8976 section 2.2.4)
	if rrtype == dns.TypeZONEMD && len(digits) < 2*least {
		return fmt.Errorf("the digest has %d bytes, and needs %d at least", len(digits)/2, least)
	}
	if size := digestSizes[rrtype][algorithm]; size > 0 && len(digits) != 2*size {
		return fmt.Errorf("the digest has %d bytes, and one of type %d has %d", len(digits)/2, algorithm, size)
	}
	return nil
}
