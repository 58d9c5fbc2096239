package masterfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// ReadsRdata is false for types whose rdata is passed over: what such a record says is not checked.
func ReadsRdata(rrtype uint16) bool {
	return forms[rrtype] != nil || rrset.CheckDeclarable(rrtype) == nil
}

// forms has for each type that is read a function that takes its fields, and returns them as package rrset reads them.
var forms = map[uint16]func(*fields) string{
	dns.TypeA:     func(f *fields) string { return f.address("an IPv4 address", netip.Addr.Is4) },
	dns.TypeAAAA:  func(f *fields) string { return f.address("an IPv6 address", netip.Addr.Is6) },
	dns.TypeNS:    (*fields).name,
	dns.TypeCNAME: (*fields).name,
	dns.TypePTR:   (*fields).name,
	dns.TypeDNAME: (*fields).name,
	dns.TypeMX:    func(f *fields) string { return f.number(16) + " " + f.name() },
	dns.TypeSRV:   func(f *fields) string { return f.number(16) + " " + f.number(16) + " " + f.number(16) + " " + f.name() },
	dns.TypeTXT:   (*fields).texts,
	dns.TypeCAA:   func(f *fields) string { return f.number(8) + " " + f.tag() + " " + f.text(math.MaxUint16) },
	dns.TypeNAPTR: func(f *fields) string {
		return f.number(16) + " " + f.number(16) + " " + f.text(maxString) + " " + f.text(maxString) + " " + f.naptrRegexp() + " " + f.name()
	},
	dns.TypeSOA: func(f *fields) string {
		return f.name() + " " + f.name() + " " + f.number(32) + " " + f.time() + " " + f.time() + " " + f.time() + " " + f.time()
	},
}

// maxString is the length of a character-string in bytes (RFC 1035 section 3.3).
const maxString = 255

// rdata is the data of one record.
type rdata struct {
	// text is canonical.
	text string
	// spelled is the text with names as they are spelled, empty where that is the same.
	spelled string
	// size is the length in bytes on the wire, about.
	size int
	// hosts are the names in it.
	hosts []string
	// problem says why BIND reads the record and Lockstep cannot have it; then there is no text.
	problem string
}

// readRdata reads the words behind the type. An error means that BIND does not read them either.
func readRdata(rrtype uint16, words []word, origin name) (rdata, error) {
	form := forms[rrtype]
	if form == nil {
		return readOther(rrtype, words, origin), nil
	}
	if isGeneric(rrtype, words) {
		return readGeneric(rrtype, words[1:])
	}
	f := &fields{words: words, origin: origin}
	text := form(f)
	if f.err == nil && len(f.words) > 0 {
		f.err = fmt.Errorf("%q is more than the type has", f.words[0].text)
	}
	if f.err != nil {
		return rdata{}, fmt.Errorf("%s: %w", rrset.TypeName(rrtype), f.err)
	}
	canonical, err := rrset.Parse(rrset.Key{Type: rrtype}, text)
	if err != nil {
		return rdata{size: f.size, problem: err.Error()}, nil
	}
	read := rdata{text: canonical, size: f.size, hosts: f.hosts}
	if _, named := rrset.HostOf(rrtype, text); named && text != canonical {
		read.spelled = text
	}
	return read, nil
}

// readRdata reads the words behind the header.
func (h header) readRdata(words []word, origin name) (rdata, error) {
	if h.foreign != "" {
		return rdata{problem: h.foreign}, nil
	}
	return readRdata(h.rrtype, words, origin)
}

// readOther reads the words behind a type that has no form here. What package rrset cannot read, BIND may.
func readOther(rrtype uint16, words []word, origin name) rdata {
	written, size := writeWords(rrtype, words)
	if !ReadsRdata(rrtype) {
		return rdata{size: size}
	}
	if !rrset.ReadsText(rrtype) && !isGeneric(rrtype, words) {
		return rdata{size: size, problem: rrset.TypeName(rrtype) + ` data is read in the form of RFC 3597 only: \# LENGTH HEX`}
	}
	if rrtype == dns.TypeURI && !isGeneric(rrtype, words) && slices.IndexFunc(words, func(w word) bool { return w.quoted }) != 2 {
		return rdata{size: size, problem: "BIND reads no URI record without quotes around its target: " + written}
	}
	text, _, err := rrset.ParseRelative(rrtype, written, origin.text)
	if err == nil {
		err = rrset.CheckContents(rrtype, text)
	}
	if err != nil {
		return rdata{size: size, problem: err.Error()}
	}
	return rdata{text: text, size: size}
}

// lineEnds writes the line ends in a quoted word as escapes; a pair of backslashes stays as it is.
var lineEnds = strings.NewReplacer(`\\`, `\\`, "\\\n", `\010`, "\\\r", `\013`, "\r", `\013`)

// writeWords returns words as they were written, with single blanks between them, and their size in bytes. In the parameters of a service,
// key="value" is one word (RFC 9460 section 2.1).
func writeWords(rrtype uint16, words []word) (written string, size int) {
	var out strings.Builder
	hasParameters := rrtype == dns.TypeSVCB || rrtype == dns.TypeHTTPS
	for i, w := range words {
		size += len(w.text)
		if isValue := hasParameters && w.quoted && w.joined && !words[i-1].quoted && strings.IndexByte(words[i-1].text, '=') == len(words[i-1].text)-1; i > 0 && !isValue {
			out.WriteByte(' ')
		}
		if w.quoted {
			out.WriteString(`"` + lineEnds.Replace(w.text) + `"`)
		} else {
			out.WriteString(w.text)
		}
	}
	return out.String(), size
}

// fields takes words one by one. After the first error, it gives nothing that means anything.
type fields struct {
	words  []word
	origin name
	size   int
	hosts  []string
	err    error
}

func (f *fields) next(what string) word {
	if f.err == nil && len(f.words) == 0 {
		f.err = fmt.Errorf("the data ends where %s belongs", what)
	}
	if f.err != nil {
		return word{}
	}
	w := f.words[0]
	f.words = f.words[1:]
	return w
}

// plain takes a word that has no quotes.
func (f *fields) plain(what string) string {
	w := f.next(what)
	if w.quoted {
		f.fail(w.text, what+" without quotes")
	}
	return w.text
}

func (f *fields) fail(text, what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%q is not %s", text, what)
	}
}

func (f *fields) number(bits int) string {
	what := fmt.Sprintf("a number of %d bits", bits)
	text := f.plain(what)
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		f.fail(text, what)
	}
	f.size += bits / 8
	return strconv.FormatUint(n, 10)
}

// time takes a number of seconds, or a time with units.
func (f *fields) time() string {
	const what = "a time in seconds, or as 1h30m"
	text := f.plain(what)
	n, ok := parseTTL(text)
	if !ok {
		f.fail(text, what)
	}
	f.size += 4
	return strconv.FormatUint(uint64(n), 10)
}

func (f *fields) name() string {
	text := f.plain("a name")
	if f.err != nil {
		return ""
	}
	n, err := parseName(text, f.origin)
	if err != nil {
		f.err = err
		return ""
	}
	f.size += n.size
	f.hosts = append(f.hosts, n.canonical())
	return n.spelled()
}

func (f *fields) address(what string, family func(netip.Addr) bool) string {
	text := f.plain(what)
	a, err := netip.ParseAddr(text)
	if err != nil || !family(a) || a.Zone() != "" {
		f.fail(text, what)
	}
	f.size += a.BitLen() / 8
	return text
}

// text takes a character-string, and returns it in quotes.
func (f *fields) text(most int) string {
	raw, err := readString(f.next("a text"), most)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.size += 1 + len(raw)
	return quote(raw)
}

// naptrRegexp takes the third text of a NAPTR record.
func (f *fields) naptrRegexp() string {
	raw, err := readString(f.next("a substitution"), maxString)
	if f.err == nil {
		if f.err = err; err == nil {
			f.err = rrset.CheckSubstitution(string(raw))
		}
	}
	f.size += 1 + len(raw)
	return quote(raw)
}

func (f *fields) texts() string {
	all := []string{f.text(maxString)}
	for len(f.words) > 0 && f.err == nil {
		all = append(all, f.text(maxString))
	}
	return strings.Join(all, " ")
}

func (f *fields) tag() string {
	text := f.plain("a tag")
	if strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789") != "" || len(text) > maxString || text == "" {
		f.fail(text, "a tag of letters and digits (RFC 8659 section 4.1)")
	}
	f.size += 1 + len(text)
	return text
}

// readString decodes a character-string (RFC 1035 section 5.1).
func readString(w word, most int) ([]byte, error) {
	if strings.IndexByte(w.text, '\\') < 0 && len(w.text) <= most {
		return []byte(w.text), nil
	}
	raw := make([]byte, 0, len(w.text))
	for i := 0; i < len(w.text); {
		c, n := w.text[i], 1
		if c == '\\' {
			var err error
			if c, n, err = unescape(w.text, i); err != nil {
				return nil, err
			}
		}
		raw, i = append(raw, c), i+n
	}
	if len(raw) > most {
		return nil, fmt.Errorf("a text has %d bytes, more than %d: cut it into several (RFC 1035 section 3.3)", len(raw), most)
	}
	return raw, nil
}

func quote(raw []byte) string {
	out := append(make([]byte, 0, len(raw)+2), '"')
	for _, c := range raw {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			out = appendDDD(out, c)
		} else {
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// isGeneric recognizes the form of RFC 3597 section 5. In a TXT record, \# alone is a text.
func isGeneric(rrtype uint16, words []word) bool {
	if len(words) == 0 || words[0].quoted || words[0].text != `\#` {
		return false
	}
	return rrtype != dns.TypeTXT || len(words) > 1 && !words[1].quoted && words[1].text != "" && strings.Trim(words[1].text, "0123456789") == ""
}

// readGeneric reads the length and the bytes of rdata as RFC 3597 section 5 writes them.
func readGeneric(rrtype uint16, words []word) (rdata, error) {
	f := &fields{words: words}
	size, _ := strconv.Atoi(f.number(16))
	var digits strings.Builder
	for f.err == nil && len(f.words) > 0 {
		digits.WriteString(f.plain("hexadecimal digits"))
	}
	if f.err != nil {
		return rdata{}, f.err
	}
	raw, err := hex.DecodeString(digits.String())
	if err != nil || len(raw) != size {
		return rdata{}, fmt.Errorf(`\# %d does not go with %d hexadecimal digits (RFC 3597 section 5)`, size, digits.Len())
	}
	key, _, text := rrset.FromRR(&dns.RFC3597{Hdr: dns.RR_Header{Name: ".", Rrtype: rrtype, Class: dns.ClassINET}, Rdata: digits.String()})
	if err := packsTo(key, text, raw); err != nil {
		return rdata{size: size, problem: fmt.Sprintf("its bytes are not data of this type: %v", err)}, nil
	}
	hosts := strings.Fields(text)
	return rdata{text: text, spelled: spellGeneric(key, text, digits.String()), size: size, hosts: hosts[len(hosts)-1:]}, nil
}

// spellGeneric returns canonical text that ends in a name as the bytes spell it, empty if that is the same.
func spellGeneric(key rrset.Key, text, digits string) string {
	host, named := rrset.HostOf(key.Type, text)
	if !named {
		return ""
	}
	rr, err := rrset.ToRR(key, 0, fmt.Sprintf(`\# %d %s`, len(digits)/2, digits)) //nolint:mnd // two digits a byte
	if err != nil {
		return ""
	}
	words := strings.Fields(rr.String())
	spelled, err := rrset.SpelledName(words[len(words)-1])
	if err != nil || spelled == host {
		return ""
	}
	return strings.TrimSuffix(text, host) + spelled
}

// packsTo fails unless canonical text stands for rdata, whose names may have upper case.
func packsTo(key rrset.Key, text string, want []byte) error {
	rr, err := rrset.ToRR(key, 0, text)
	if err != nil {
		return err
	}
	buffer := make([]byte, dns.MaxMsgSize+len(want))
	n, err := dns.PackRR(rr, buffer, 0, nil, false)
	if err != nil {
		return err
	}
	const head = 1 + 2 + 2 + 4 + 2 // the root, type, class, TTL, length
	if n < head || !bytes.Equal(bytes.ToLower(buffer[head:n]), bytes.ToLower(want)) {
		return errors.New("they would be " + text)
	}
	return nil
}
