package rrset

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// txtCodec writes strings in quotes. How the text is split into strings is part of the data.
var txtCodec = rdataCodec{
	parse: func(s string) (string, error) {
		strs, err := parseTXT(s)
		if err != nil {
			return "", err
		}
		return TXT(strs...)
	},
	build: func(h dns.RR_Header, s string) (dns.RR, error) {
		strs, err := parseTXT(s)
		if err != nil {
			return nil, err
		}
		rr := &dns.TXT{Hdr: h, Txt: make([]string, len(strs))}
		for i, raw := range strs {
			if rr.Txt[i] = raw; !isVerbatim(raw) {
				quoted := appendQuoted(nil, raw)
				rr.Txt[i] = string(quoted[1 : len(quoted)-1])
			}
		}
		return rr, nil
	},
	text: textOf(func(r *dns.TXT) (string, bool) {
		if len(r.Txt) == 1 && isVerbatim(r.Txt[0]) {
			return `"` + r.Txt[0] + `"`, true
		}
		raw := make([]string, len(r.Txt))
		for i, s := range r.Txt {
			raw[i] = decodeEscaped(s)
		}
		if len(raw) == 0 {
			raw = []string{""} // How miekg/dns prints empty rdata, which RFC 1035 does not allow.
		}
		s, err := TXT(raw...)
		return s, err == nil
	}),
}

func parseTXT(rdata string) ([]string, error) {
	strs, err := ParseStrings(rdata)
	if err != nil {
		return nil, err
	}
	for _, s := range strs {
		if len(s) > maxString {
			return nil, fmt.Errorf("a string is %d bytes long; a string has at most %d, but a record may have several (RFC 1035 section 3.3)", len(s), maxString)
		}
	}
	if len(strs) == 0 {
		return nil, errors.New(`the rdata has no string; write "" for an empty one`)
	}
	return strs, nil
}

// caaRdata is the data of a CAA record; value holds raw bytes.
type caaRdata struct {
	flags uint8
	tag   string
	value string
}

func (c caaRdata) String() string {
	out := make([]byte, 0, len(c.tag)+len(c.value)+8)
	out = append(strconv.AppendUint(out, uint64(c.flags), 10), ' ')
	out = append(append(out, c.tag...), ' ')
	return string(appendQuoted(out, c.value))
}

// CAA makes canonical CAA rdata (RFC 8659 section 4.1). The value holds raw bytes, not escaped in any way.
func CAA(flags uint8, tag, value string) (string, error) {
	c := caaRdata{flags, strings.ToLower(tag), value}
	if err := c.check(); err != nil {
		return "", err
	}
	return c.String(), nil
}

func (c caaRdata) check() error {
	if len(c.tag) == 0 || len(c.tag) > 15 || strings.Trim(c.tag, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return fmt.Errorf("tag %q is not 1 to 15 letters and digits (RFC 8659 section 4.1), such as issue", Shorten(c.tag))
	}
	if size := 2 + len(c.tag) + len(c.value); size > maxRdata {
		return fmt.Errorf("the data takes %d bytes; a record has at most %d", size, maxRdata)
	}
	return nil
}

func parseCAA(rdata string) (caaRdata, error) {
	f := strings.SplitN(strings.TrimLeft(rdata, " \t"), " ", 3)
	if len(f) != 3 {
		return caaRdata{}, errors.New(`expected: flags tag "value"`)
	}
	flags, err := strconv.ParseUint(f[0], 10, 8)
	if err != nil {
		return caaRdata{}, fmt.Errorf("flags %q is not a number from 0 to 255", f[0])
	}
	value, err := ParseStrings(f[2])
	if err != nil {
		return caaRdata{}, err
	}
	if len(value) != 1 {
		return caaRdata{}, fmt.Errorf("expected one value, got %d; put it in quotes", len(value))
	}
	c := caaRdata{uint8(flags), strings.ToLower(f[1]), value[0]}
	return c, c.check()
}

// caaCodec works around miekg/dns, which reads the value from the network as it is, but takes "\" in it for an escape when
// it packs, and packs no long values. Value is therefore always raw, and a value that would be garbled is sent as raw
// rdata (RFC 3597).
var caaCodec = rdataCodec{
	parse: func(s string) (string, error) {
		c, err := parseCAA(s)
		return c.String(), err
	},
	build: func(h dns.RR_Header, s string) (dns.RR, error) {
		c, err := parseCAA(s)
		if err != nil {
			return nil, err
		}
		if strings.IndexByte(c.value, '\\') >= 0 || len(c.value) > 1024 {
			raw := append([]byte{c.flags, byte(len(c.tag))}, c.tag+c.value...)
			return &dns.RFC3597{Hdr: h, Rdata: hex.EncodeToString(raw)}, nil
		}
		return &dns.CAA{Hdr: h, Flag: c.flags, Tag: c.tag, Value: c.value}, nil
	},
	text: textOf(func(r *dns.CAA) (string, bool) {
		return caaRdata{r.Flag, strings.ToLower(decodeEscaped(r.Tag)), r.Value}.String(), true
	}),
}
