package rrset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miekg/dns"
)

// parameter is one of an SVCB or HTTPS record (RFC 9460 section 2.2).
type parameter struct {
	key   dns.SVCBKey
	value []byte
}

const (
	// namedKeys is how many keys of services have names in miekg/dns, which reads these by name only.
	namedKeys = int(dns.SVCB_OHTTP) + 1
	// reservedKey is the last key, which BIND takes and miekg/dns does not.
	reservedKey = 65535
)

// cutParameters takes the parameters out of a service's rdata that miekg/dns reads otherwise than BIND: those whose keys have names and are
// written by number, such as key7="/q{?dns}", the reserved key, and lists. Values of numbered keys are bytes (RFC 9460 section 2.1); BIND
// writes keys so that it has no name for.
func cutParameters(rdata string) (rest string, cut []parameter, err error) {
	words := parameterWords(rdata)
	const parameters = 2 // behind priority and target
	kept := slices.Clone(words[:min(len(words), parameters)])
	if len(kept) == parameters {
		kept[1] = unquoteName(kept[1])
	}
	for _, word := range words[len(kept):] {
		name, value, _ := strings.Cut(word, "=")
		digits, _ := strings.CutPrefix(name, "key")
		number, errNumber := strconv.Atoi(digits)
		isNumbered := errNumber == nil && number >= 0 && (number < namedKeys || number == reservedKey) && name == "key"+strconv.Itoa(number)
		read := listBytes[name]
		if !isNumbered && read == nil {
			kept = append(kept, word)
			continue
		}
		raw, n := "", 0
		if value != "" {
			if raw, n, err = nextString(value); err == nil && n < len(value) {
				err = errors.New("a parameter goes on behind the quote that ends its value")
			}
			if err != nil {
				return "", nil, err
			}
		}
		if isNumbered {
			cut = append(cut, parameter{dns.SVCBKey(number), []byte(raw)}) //nolint:gosec // bounded above
			continue
		}
		one := parameter{key: keysByName[name]}
		for element := range strings.SplitSeq(raw, ",") {
			part, ok := read(element)
			if !ok || strings.Contains(value, `\`) {
				return "", nil, fmt.Errorf("%q cannot be read: %s has %s", Shorten(word), name, parameterForms[name])
			}
			one.value = append(one.value, part...)
		}
		cut = append(cut, one.sorted())
	}
	return strings.Join(kept, " "), cut, nil
}

// quotedName has what a zone file may have in a name in quotes, and not in one without.
var quotedName = regexp.MustCompile(`\\.|[ \t;()]`)

// unquoteName returns a word without its quotes if these hold a name, as BIND has it for the target of a service.
func unquoteName(word string) string {
	name := word[1:max(len(word)-1, 1)]
	if name == "" || word != `"`+name+`"` {
		return word
	}
	return quotedName.ReplaceAllStringFunc(name, func(part string) string {
		if c := part[len(part)-1]; len(part) == 1 || c == ' ' || c == '\t' {
			return string(appendDDD(nil, c))
		}
		return part
	})
}

// listBytes read the elements of values that are lists.
var listBytes = map[string]func(string) ([]byte, bool){
	"mandatory": func(s string) ([]byte, bool) {
		key, known := keysByName[s]
		if digits, numbered := strings.CutPrefix(s, "key"); numbered {
			n, err := strconv.ParseUint(digits, 10, 16)
			key, known = dns.SVCBKey(n), err == nil && strconv.FormatUint(n, 10) == digits
		}
		return binary.BigEndian.AppendUint16(nil, uint16(key)), known
	},
	"ipv4hint": func(s string) ([]byte, bool) {
		address, err := netip.ParseAddr(s)
		return address.AsSlice(), err == nil && address.Is4()
	},
	"ipv6hint": func(s string) ([]byte, bool) {
		address, err := netip.ParseAddr(s)
		return address.AsSlice(), err == nil && address.Is6() && address.Zone() == ""
	},
}

var keysByName = func() map[string]dns.SVCBKey {
	names := map[string]dns.SVCBKey{}
	for key := range dns.SVCBKey(namedKeys) {
		names[key.String()] = key
	}
	return names
}()

// sorted puts the keys of a list of mandatory ones in order (RFC 9460 section 8).
func (p parameter) sorted() parameter {
	if p.key == dns.SVCB_MANDATORY {
		pairs := slices.Collect(slices.Chunk(p.value, 2))
		slices.SortFunc(pairs, bytes.Compare)
		p.value = slices.Concat(pairs...)
	}
	return p
}

// addParameters adds parameters to those of a service.
func addParameters(rr dns.RR, more []parameter) (dns.RR, error) {
	raw, err := rdataOf(rr)
	if err != nil {
		return nil, err
	}
	head, parameters, err := readService(raw)
	if err != nil {
		return nil, err
	}
	parameters = append(parameters, more...)
	slices.SortStableFunc(parameters, func(a, b parameter) int { return cmp.Compare(a.key, b.key) })
	for _, p := range parameters {
		head = binary.BigEndian.AppendUint16(head, uint16(p.key))
		head = append(binary.BigEndian.AppendUint16(head, uint16(len(p.value))), p.value...) //nolint:gosec // text of a record
	}
	return fromBytes(*rr.Header(), head)
}

// readService reads the bytes of a service's rdata: what is before the parameters, and these, in any order.
func readService(raw []byte) (head []byte, parameters []parameter, err error) {
	short := errors.New("the bytes end too early")
	const priority, sizes = 2, 4
	if len(raw) < priority {
		return nil, nil, short
	}
	_, n, err := dns.UnpackDomainName(raw, priority)
	if err != nil {
		return nil, nil, fmt.Errorf("the target of the service: %w", err)
	}
	head = slices.Clone(raw[:n])
	for rest := raw[n:]; len(rest) > 0; {
		if len(rest) < sizes || len(rest)-sizes < int(binary.BigEndian.Uint16(rest[2:])) {
			return nil, nil, short
		}
		end := sizes + int(binary.BigEndian.Uint16(rest[2:]))
		parameters = append(parameters, parameter{dns.SVCBKey(binary.BigEndian.Uint16(rest)), rest[sizes:end]})
		rest = rest[end:]
	}
	return head, parameters, nil
}

// checkService checks the parameters of a service as BIND does, by themselves and together.
func checkService(raw []byte) error {
	_, parameters, err := readService(raw)
	if err != nil {
		return err
	}
	for i, p := range parameters {
		if i > 0 && parameters[i-1].key == p.key {
			return fmt.Errorf("the parameter %s is there twice", keyName(p.key))
		}
		if i > 0 && parameters[i-1].key > p.key {
			return errors.New("the parameters are not in the order of their keys (RFC 9460 section 2.2)")
		}
		if err := p.check(parameters); err != nil {
			return err
		}
	}
	return nil
}

func keyName(key dns.SVCBKey) string {
	if key == reservedKey {
		return "key65535"
	}
	return key.String()
}

func hasKey(parameters []parameter, key dns.SVCBKey) bool {
	return slices.ContainsFunc(parameters, func(p parameter) bool { return p.key == key })
}

// check checks one parameter beside all (RFC 9460 sections 7.1.1 and 8, RFC 9461 section 5).
func (p parameter) check(all []parameter) error {
	size := len(p.value)
	switch p.key {
	case dns.SVCB_MANDATORY:
		return p.checkMandatory(all)
	case dns.SVCB_ALPN:
		for rest := p.value; size == 0 || len(rest) > 0; rest = rest[1+int(rest[0]):] {
			if size == 0 || rest[0] == 0 {
				return errors.New("alpn has an empty protocol; write one such as h2, or leave alpn out (RFC 9460 section 7.1.1)")
			}
			if int(rest[0]) >= len(rest) {
				return errors.New("alpn ends too early")
			}
		}
	case dns.SVCB_NO_DEFAULT_ALPN:
		if !hasKey(all, dns.SVCB_ALPN) {
			return errors.New("no-default-alpn needs alpn beside it (RFC 9460 section 7.1.1)")
		}
		return p.checkSize(size == 0)
	case dns.SVCB_ECHCONFIG, dns.SVCB_OHTTP: // BIND takes whatever they hold.
	case dns.SVCB_PORT:
		return p.checkSize(size == 2) //nolint:mnd // bytes of a port
	case dns.SVCB_IPV4HINT:
		return p.checkSize(size > 0 && size%4 == 0) //nolint:mnd // bytes of an address
	case dns.SVCB_IPV6HINT:
		return p.checkSize(size > 0 && size%16 == 0) //nolint:mnd // bytes of an address
	case dns.SVCB_DOHPATH:
		if !isPathOfQuestions(p.value) {
			return errors.New("dohpath is a relative template with the variable dns, such as /dns-query{?dns} (RFC 9461 section 5)")
		}
	}
	return nil
}

func (p parameter) checkSize(ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s cannot have %d bytes", keyName(p.key), len(p.value))
}

func (p parameter) checkMandatory(all []parameter) error {
	if len(p.value) == 0 || len(p.value)%2 != 0 {
		return errors.New("mandatory names no parameter; name some, such as mandatory=alpn, or leave it out (RFC 9460 section 8)")
	}
	previous := -1
	for rest := p.value; len(rest) > 0; rest = rest[2:] {
		switch key := dns.SVCBKey(binary.BigEndian.Uint16(rest)); {
		case int(key) == previous:
			return fmt.Errorf("mandatory lists %s twice (RFC 9460 section 8)", keyName(key))
		case int(key) < previous:
			return errors.New("mandatory is not in order (RFC 9460 section 8)")
		case key == dns.SVCB_MANDATORY || !hasKey(all, key):
			return fmt.Errorf("mandatory lists %s, which is no other parameter of this record (RFC 9460 section 8)", keyName(key))
		default:
			previous = int(key)
		}
	}
	return nil
}

var (
	expression = regexp.MustCompile(`\{[^{}]*\}`)
	variables  = regexp.MustCompile(`^\{[+#./;?&]?((?:[A-Za-z0-9_.%]+(?::[0-9]{1,4}|\*)?,?)+)\}$`)
)

// isPathOfQuestions reports whether a template is a path with the variable dns (RFC 6570 section 2).
func isPathOfQuestions(template []byte) bool {
	rest := expression.ReplaceAll(template, nil)
	if !utf8.Valid(template) || !bytes.HasPrefix(template, []byte("/")) || bytes.ContainsAny(rest, "{}") {
		return false
	}
	found := false
	for _, one := range expression.FindAll(template, -1) {
		names := variables.FindSubmatch(one)
		if names == nil {
			return false
		}
		for name := range bytes.SplitSeq(names[1], []byte(",")) {
			name, _, _ = bytes.Cut(name, []byte(":"))
			found = found || string(bytes.TrimSuffix(name, []byte("*"))) == "dns"
		}
	}
	return found
}
