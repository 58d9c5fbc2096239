package declaration

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// typedValues reads the data of a DNSRecord: each entry as a zone file has it, relative to the origin. Its err joins what is wrong with
// each.
func typedValues(mnemonic string, data []string, origin string) recordValues {
	rrtype, err := readType(mnemonic)
	if err != nil {
		return recordValues{err: fmt.Errorf("spec.type: %w", err)}
	}
	d := recordValues{rrtype: rrtype, rdata: make([]string, 0, len(data))}
	var errs []error
	for i, text := range data {
		field := fmt.Sprintf("spec.data[%d]", i)
		canonical, spelled, note, err := readRelative(rrtype, field, text, origin)
		if err != nil {
			if rest := behindHeader(rrtype, text); rest != "" {
				if _, _, _, unread := readRelative(rrtype, field, rest, origin); unread == nil {
					err = fmt.Errorf("%s: %w", field, wholeLineError(text, rest))
				}
			}
			errs = append(errs, err)
			continue
		}
		if d.add(canonical, spelled); d.note == "" {
			d.note = note
		}
	}
	if len(data) == 0 {
		errs = append(errs, errors.New("spec.data: there is no data"))
	}
	d.err = errors.Join(errs...)
	return d.checkLimits("spec.data").checkSingle("spec.data")
}

// behindHeader is the data of a whole line of a zone file, with its name, TTL, class and type; empty if the text is none.
func behindHeader(rrtype uint16, text string) string {
	rest := text
	const most = 4 // name, TTL, class, type
	for range most {
		word, behind, more := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
		if rest = behind; !more {
			return ""
		}
		if strings.EqualFold(word, rrset.TypeName(rrtype)) {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func wholeLineError(text, rest string) error {
	return fmt.Errorf("%q is a line of a zone file; write its data alone: %s", rrset.Shorten(text), rrset.Shorten(rest))
}

// readType reads the mnemonic of a type that can be declared.
func readType(mnemonic string) (uint16, error) {
	rrtype, known := rrset.ParseType(mnemonic)
	if _, what := rrset.ForeignType(mnemonic); !known && what != "" {
		return 0, errors.New(what)
	}
	if !known {
		return 0, fmt.Errorf("%q is not a record type; write one of the IANA registry, such as HTTPS, or TYPE and its number (RFC 3597 section 5)", rrset.Shorten(mnemonic))
	}
	return rrtype, rrset.CheckDeclarable(rrtype)
}

// readRelative reads rdata as a zone file has it. Names without a final dot are relative to the origin.
func readRelative(rrtype uint16, field, text, origin string) (canonical, spelled, note string, err error) {
	if _, named := rrset.HostOf(rrtype, ""); named && !strings.HasPrefix(text, `\#`) {
		return readHost(rrtype, field, text, origin)
	}
	if rrset.HasRules(rrtype) {
		canonical, err = parseByRules(rrtype, text)
		spelled = canonical
	} else {
		canonical, spelled, err = parseTyped(rrtype, text, origin)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", field, err)
	}
	return canonical, spelled, "", err
}

// parseByRules reads rdata of a type with rules of its own. Bytes (RFC 3597 section 5) that end too early are refused: an MX record without its
// host would become another one.
func parseByRules(rrtype uint16, text string) (canonical string, err error) {
	key := rrset.Key{Type: rrtype}
	if canonical, err = rrset.Parse(key, text); !strings.HasPrefix(text, `\#`) {
		return canonical, err
	}
	again, errAgain := rrset.Parse(key, canonical)
	fields := strings.Fields(text)
	if err != nil || errAgain != nil || again != canonical || len(fields) < 2 || fields[1] != strconv.Itoa(rdataLength(rrtype, canonical)) {
		return "", fmt.Errorf("the bytes %q are no data of a record of type %s", rrset.Shorten(text), rrset.TypeName(rrtype))
	}
	return canonical, nil
}

// rdataLength is how many bytes canonical rdata takes on the wire, 0 if it is no data.
func rdataLength(rrtype uint16, canonical string) int {
	rr, err := rrset.ToRR(rrset.Key{Name: ".", Type: rrtype}, 0, canonical)
	if err != nil {
		return 0
	}
	packed := make([]byte, dns.Len(rr)+1)
	n, err := dns.PackRR(rr, packed, 0, nil, false)
	if err != nil {
		return 0
	}
	const header = 1 + 2 + 2 + 4 + 2 // The root, type, class, TTL and length (RFC 1035 section 3.2.1).
	return n - header
}

// parseTyped reads rdata of a type without rules of its own, and refuses what no server takes.
func parseTyped(rrtype uint16, text, origin string) (canonical, spelled string, err error) {
	canonical, spelled, err = rrset.ParseRelative(rrtype, text, origin)
	if err == nil {
		err = rrset.CheckContents(rrtype, canonical)
	}
	return canonical, spelled, err
}

// readHost reads rdata that ends in the name of a host.
func readHost(rrtype uint16, field, text, origin string) (canonical, spelled, note string, err error) {
	text = strings.TrimSpace(text)
	if rrtype == dns.TypeMX || rrtype == dns.TypeSRV {
		if i := strings.LastIndexAny(text, " \t"); i >= 0 {
			spelled, text = text[:i+1], text[i+1:]
		}
	}
	host, spelledHost, note, err := resolveHost(field, text, origin)
	if err == nil && host == "." && spelled == "" {
		err = fmt.Errorf(`%s: "." is the root of DNS and no host`, field)
	}
	if err != nil {
		return "", "", "", err
	}
	if canonical, err = rrset.Parse(rrset.Key{Type: rrtype}, spelled+host); err != nil {
		if _, own := rrset.Parse(rrset.Key{Type: rrtype}, spelled+text); own != nil {
			err = own // Quotes what the user wrote.
		}
		return "", "", "", fmt.Errorf("%s: %w", field, err)
	}
	return canonical, strings.TrimSuffix(canonical, host) + spelledHost, note, nil
}

// checkSingle refuses several values of a type that has one for each name.
func (d recordValues) checkSingle(field string) recordValues {
	if d.err == nil && len(d.rdata) > 1 && rrset.SingleRule(d.rrtype) != "" {
		d.err = fmt.Errorf("%s: a %s has one target, and there are %d (%s)", field, rrset.TypeName(d.rrtype), len(d.rdata), rrset.SingleRule(d.rrtype))
	}
	return d
}
