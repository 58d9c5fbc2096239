// Package trap finds data that DNS takes and that nearly always is a mistake. It takes values and gives values; package review asks it about
// what an object declares, and "lockstep validate" lists what it knows.
package trap

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Trap is data that DNS takes and that nearly always is a mistake: it is stored, with a warning.
type Trap struct {
	// ID is what warnings end with, in brackets.
	ID string
	// Summary is one line, Explanation the whole: what happens, and what to write.
	Summary, Explanation string
	// find returns what is wrong with a value, "" if nothing is; nil for a trap that depends on other objects.
	find func(v value) string
}

// Found is a trap that an object is in.
type Found struct {
	ID, Field string
	// Text begins with the field.
	Text string
}

// IDs of the traps that depend on what else is declared: reviewers find these.
const (
	RelativeTarget  = "relative-target"
	MissingGlue     = "missing-glue"
	AliasTarget     = "alias-target"
	AliasCircle     = "alias-circle"
	SeveralPolicies = "several-policies"
	ReverseName     = "reverse-name"
	ServiceName     = "service-name"
	NullTarget      = "null-target"
	SeveralTTLs     = "several-ttls"
	SOATimers       = "soa-timers"
	ZoneTwice       = "zone-twice"
	// AddressTarget is also found in values by themselves.
	AddressTarget = "address-target"
)

// All are the traps that admission and "lockstep validate" know.
var All = []Trap{
	{
		"txt-list", "A list of texts that are the strings of one TXT record",
		`spec.text of a TXTRecord, and several quoted strings in one value, are the strings of one TXT record. Readers join them without a
blank (RFC 7208 section 3.3): "v=spf1 mx -all" and "site-verification=abc" become "v=spf1 mx -allsite-verification=abc", and mail
servers find no valid SPF. Write a TXTRecord for each record, or one target of a DNSEndpoint for each. If they are one SPF record,
write it as one text, or end each string but the last with a blank.`,
		findJoinedTexts,
	},
	{
		"quotes", "Quotes or backslashes of zone files inside a value",
		`text of a TXTRecord and value of a CAARecord are the values themselves. Quotes that come with them from a zone file, from dig or from
a provider's page become part of the data, as do the backslashes of \; and \": SPF, DKIM and CAA do not match any more. Leave them out.
A text of more than 255 bytes is split into strings by itself. In the targets of a DNSEndpoint and the data of a DNSRecord one pair of
quotes is notation, and further ones with backslashes are data.`,
		findQuotes,
	},
	{
		"line-end", "A line end inside a value",
		`YAML's block style "|" ends a text with a line end, and keeps those in between. They become part of the data, which programs do not
expect: validations fail. Write the value in one line, or use ">-", which turns line ends into blanks and drops the last.`,
		findLineEnd,
	},
	{
		RelativeTarget, "A relative target that looks complete, or a complete one that looks relative",
		`A host name without a final dot is relative to the zone: "cdn.example.net" in the zone example.com is cdn.example.net.example.com.
The warning appears where nothing is declared at that name. Write "cdn.example.net." for a complete name, also in data of a DNSRecord: "1
svc.example.net. alpn=h2". The targets of a DNSEndpoint are always complete: there, "cdn" is no name in the zone, and "cdn.example.com" is.`,
		nil,
	},
	{
		AddressTarget, "An address, a port or a URL where the name of a host belongs",
		`Targets are names: clients look for the addresses of "192.0.2.10." as of any other name, and no name ends in a number or has a colon. Data
of types with kinds of their own, such as CNAME and MX, is refused if a target is an address. Name a host, and declare its address by an ARecord
or AAAARecord; for HTTPS and SVCB, "." names the host that has the record. Ports are in the data of SRV, or port=8443 of HTTPS; a
URL has no place in DNS but in URI records.`,
		findNoHost,
	},
	{
		MissingGlue, "A name server inside the zone without an address",
		`A resolver that is sent to a name server has to find its address. Where the server's name is in the zone itself, above all below the name
that it serves, only this zone can say it, as glue (RFC 1034 section 4.2.1). Without an address, the delegation leads nowhere. Declare an
ARecord or AAAARecord for the server's name, or write its name with a final dot if it is in another zone. Addresses that other programs add
to the servers are not known here. The zone's own name servers on servers of a cluster get addresses by themselves.`,
		nil,
	},
	{
		AliasTarget, "An alias as target of NS, MX or SRV",
		`NS, MX and SRV records name hosts that have addresses themselves, and no aliases (RFC 2181 section 10.3, RFC 2782). The target is declared
with a CNAME, by a wildcard or a DNAME too, in the same zone or in another one: resolvers and mail servers may refuse to follow it, and name
servers do not add its addresses. Write the name that the alias leads to, or declare addresses in place of the alias.`,
		nil,
	},
	{
		AliasCircle, "Aliases that lead in a circle, or one after the other through too many",
		`An alias has the data of its target. If aliases lead in a circle, within a zone or through several, there is none: resolvers answer with an
error (RFC 1034 section 3.6.2). They also give up behind some number of aliases, the strictest behind eight. Wildcards and DNAME records count
as aliases of the names that they match. An alias of itself, and a DNAME to its own name or below, are refused. Write the name of the host to
which all of them should lead.`,
		nil,
	},
	{
		ReverseName, "A reverse zone, or a PTR record, at a name that stands for no address",
		`A name in a reverse zone has the numbers of an address from the last to the first, and the zone has the first of them already: 192.0.2.10 is
"10" in the zone 2.0.192.in-addr.arpa, and 2001:db8::1 has the 32 digits of all of it in ip6.arpa, with a dot between each two (RFC 1035 section
3.5, RFC 3596 section 2.5). Nobody asks for names in a zone called "192.0.2.0/24". An address as a name, as in "192.0.2.10", is a name below the
zone that nobody asks for. Names with other labels, as those of RFC 2317, are no trap.`,
		nil,
	},
	{
		ServiceName, "Data at a name where its readers do not look",
		`Some data is found only at names with labels that begin with "_" (RFC 8552): the DMARC policy of example.com at _dmarc.example.com, its
MTA-STS record at _mta-sts, that of TLSRPT at _smtp._tls, a DKIM key at SELECTOR._domainkey, SRV records at names as _sip._tcp, TLSA records
at names as _443._tcp.www. Without the underscore nobody finds it, and nothing says so.`,
		nil,
	},
	{
		SeveralPolicies, "Several SPF, DMARC, MTA-STS or TLS reporting records at one name",
		`Mail servers want one SPF record at a name, and report an error if there are two, whichever would match (RFC 7208 section 4.5). Of several
DMARC, MTA-STS or TLSRPT records they take none (RFC 7489 section 6.6.3, RFC 8461 section 3.1, RFC 8460 section 3). Objects that declare the
same name and type are merged, so a second object does not replace the first. Write one record: "v=spf1 mx include:_spf.example.net -all".`,
		nil,
	},
	{
		ZoneTwice, "A name that ends in the zone's name twice",
		`A name without a final dot in a zone file is relative to the zone: "mail.example.com" in example.com becomes mail.example.com.example.com, which
an import keeps, as servers have it. Programs that add a domain to names that have it already make the same. Write the name once.`,
		nil,
	},
	{
		NullTarget, `"." for no host, beside hosts`,
		`An MX or SRV record with the target "." says that there is no such service (RFC 7505 section 3, RFC 2782). Beside records with hosts, some
programs deliver nothing, others to the hosts. Declare either.`,
		nil,
	},
	{
		SeveralTTLs, "Values of one name and type with different TTLs",
		`All values of a name and type have one TTL (RFC 2181 section 5.2): the lowest that is declared is served. Declare the same one everywhere.`,
		nil,
	},
	{
		SOATimers, "A zone that secondaries drop before they ask for it twice",
		`A secondary asks its primary every refresh, if that fails every retry, and drops the zone if it has reached none for expire (RFC 1035 section
3.3.13). expire is to be much longer than both together: a week or more (RFC 1912 section 2.2), as it is by default.`,
		nil,
	},
	{
		"spf-type", "Data of type SPF, which nobody reads",
		`Mail servers look for an SPF policy in TXT records alone: the type SPF was given up (RFC 7208 section 3.1). Declare a TXTRecord with the same
text.`,
		nil,
	},
	{
		"caa-value", "A CAA record that no certificate authority reads as meant",
		`The value of issue, issuewild and issuemail is the domain name by which an authority knows itself, such as letsencrypt.org, perhaps with
parameters: "letsencrypt.org; validationmethods=dns-01" (RFC 8659 section 4.2); ";" permits none. An authority that cannot read the
value takes it for a permission to somebody else, so nobody may issue. The value of iodef is a URL. An unknown tag is ignored, or forbids
issuance with flags 128; other flags than 0 and 128 mean nothing.`,
		findBadCAA,
	},
}

// value is the data of a TXT or CAA record, or of one that names a host.
type value struct {
	// target is the host, complete; empty for TXT and CAA, which have strings.
	target string
	// strs are the strings of a TXT record; of a CAA record the value.
	strs []string
	// caa is true for CAA, with flags and tag.
	caa        bool
	flags, tag string
}

func readValue(rrtype uint16, rdata string) (v value, ok bool) {
	text := rdata
	switch rrtype {
	case dns.TypeTXT:
	case dns.TypeCAA:
		fields := strings.SplitN(rdata, " ", 3)
		if len(fields) != 3 {
			return v, false
		}
		v.caa, v.flags, v.tag, text = true, fields[0], fields[1], fields[2]
	default:
		v.target = rrset.TargetOf(rrtype, rdata)
		return v, v.target != ""
	}
	strs, err := rrset.ParseStrings(text)
	v.strs = strs
	return v, err == nil
}

// Find returns the traps that values of an RRset are in, each once.
func Find(field string, rrtype uint16, rdata []string) (found []Found) {
	if rrtype == dns.TypeSPF {
		return []Found{New("spf-type", field, field+": nobody reads records of type SPF; declare a TXTRecord with the same text (RFC 7208 section 3.1)")}
	}
	for _, data := range rdata {
		v, ok := readValue(rrtype, data)
		for _, known := range All {
			if !ok || known.find == nil || slices.ContainsFunc(found, func(f Found) bool { return f.ID == known.ID }) {
				continue
			}
			if text := known.find(v); text != "" {
				found = append(found, New(known.ID, field, field+": "+text))
				break // What follows is of no use before that is right.
			}
		}
	}
	return found
}

// New returns a trap that an object is in: text begins with the field.
func New(id, field, text string) Found {
	return Found{id, field, text + " [" + id + "]"}
}

// numbers and digits are the labels that names of addresses have below in-addr.arpa and ip6.arpa.
var (
	numbers = regexp.MustCompile(`^([0-9]+\.)+in-addr\.arpa\.$`)
	digits  = regexp.MustCompile(`^([0-9a-f]+\.)+ip6\.arpa\.$`)
	// addressNames are those of complete addresses, or of fewer numbers.
	addressNames = regexp.MustCompile(`^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){1,4}in-addr\.arpa\.$|^([0-9a-f]\.){1,32}ip6\.arpa\.$`)
)

// OfOwner returns the traps of data at a canonical owner name; the field has the name.
func OfOwner(field string, rrtype uint16, owner string, rdata []string) []Found {
	if right := serviceName(rrtype, owner, rdata); right != "" {
		return []Found{New(ServiceName, field, fmt.Sprintf("%s: nobody looks for this data at %s: write %s", field, owner, right))}
	}
	if rrtype != dns.TypePTR || addressNames.MatchString(owner) || !numbers.MatchString(owner) && !digits.MatchString(owner) {
		return nil
	}
	return []Found{New(ReverseName, field, fmt.Sprintf("%s: %s stands for no address: the name has an address' numbers from the last on, without those that the zone has", field, owner))}
}

// policyNames are the beginnings of names that lack an underscore or a selector, and what they were meant to be, by the start of a text.
// Others may be where an alias leads, as providers of mail have them.
var policyNames = map[string]struct {
	wrong *regexp.Regexp
	right string
}{
	"v=dmarc1":   {regexp.MustCompile(`^dmarc\.`), "_dmarc"},
	"v=stsv1":    {regexp.MustCompile(`^mta-sts\.`), "_mta-sts"},
	"v=tlsrptv1": {regexp.MustCompile(`^(_?smtp\.tls|smtp\._tls)\.`), "_smtp._tls"},
	"v=dkim1":    {regexp.MustCompile(`^_?domainkey\.`), "SELECTOR._domainkey"},
}

// serviceName returns a name at which data would be found, "" if it may be found where it is.
func serviceName(rrtype uint16, owner string, rdata []string) string {
	switch rrtype {
	case dns.TypeSRV, dns.TypeTLSA:
		if strings.HasPrefix(owner, "_") || strings.Contains(owner, "._") {
			return ""
		}
		return map[uint16]string{dns.TypeSRV: "a name as _sip._tcp", dns.TypeTLSA: "a name as _443._tcp.www"}[rrtype]
	case dns.TypeTXT:
		for _, data := range rdata {
			v, _ := readValue(rrtype, data)
			version, _, _ := strings.Cut(strings.ToLower(strings.Join(v.strs, "")), ";")
			if name, known := policyNames[strings.TrimSpace(version)]; known && name.wrong.MatchString(owner) {
				return name.right
			}
		}
	}
	return ""
}

// startOfPolicy is how texts begin of which a name has one.
var startOfPolicy = regexp.MustCompile(`(?i)^(v=(?:spf1|dmarc1|stsv1|tlsrptv1))(?:[ ;]|$)`)

// PolicyOf returns how the rdata of a TXT record begins if it is a policy of which a name has one, such as "v=spf1"; "" if it is none.
func PolicyOf(rdata string) string {
	v, _ := readValue(dns.TypeTXT, rdata)
	if m := startOfPolicy.FindStringSubmatch(strings.Join(v.strs, "")); m != nil {
		return strings.ToLower(m[1])
	}
	return ""
}

// OfRecord returns the traps that the data of a record is in.
func OfRecord(record v1beta1.Record, rdata []string) []Found {
	return Find(declaration.ValueField(record), declaration.RecordType(record), rdata)
}

var (
	// startOfRecord is how texts begin that are records of their own.
	startOfRecord = regexp.MustCompile(`(?i)^(v=[a-z]+[0-9]+\b|[a-z0-9._-]*(verification|validation)[a-z0-9-]*[=:]|ms=)`)
	startOfSPF    = regexp.MustCompile(`(?i)^v=spf1( |$)`)
	// startOfTags is how texts begin that are lists of tags with a semicolon between them, as those of DMARC and DKIM; tag is one of these.
	startOfTags = regexp.MustCompile(`(?i)^v=(dmarc1|dkim1|stsv1|tlsrptv1|bimi1)\b`)
	tag         = regexp.MustCompile(`^[a-z]+=[^=]`)
	endOfTag    = regexp.MustCompile(`;\s*$`)
)

func findJoinedTexts(v value) string {
	const longest = 255 // bytes of a string; a longer text is split there.
	if v.caa {
		return ""
	}
	for i, text := range v.strs {
		switch {
		case i == 0 || text == "" || len(v.strs[i-1]) == longest:
		case startOfRecord.MatchString(text):
			return fmt.Sprintf("%q begins like a record of its own, and is string %d of one TXT record, which readers join without a blank; declare it by itself", shown(text), i+1)
		case startOfSPF.MatchString(v.strs[0]) && !strings.HasSuffix(v.strs[i-1], " ") && text[0] != ' ':
			return fmt.Sprintf("readers join the strings of one TXT record without a blank: %q; write the SPF record as one text", shown(v.strs[i-1]+text))
		case startOfTags.MatchString(v.strs[0]) && tag.MatchString(text) && !endOfTag.MatchString(v.strs[i-1]):
			return fmt.Sprintf("readers join the strings of one TXT record, and here no semicolon is between them: %q; write them as one text", shown(v.strs[i-1]+text))
		}
	}
	return ""
}

// printedQuotes are quotes as word processors and web pages write them, around a text.
var printedQuotes = regexp.MustCompile(`^["“„”«‘'].*["”“»’']$`)

func findQuotes(v value) string {
	texts := append(slices.Clone(v.strs), strings.Join(v.strs, ""))
	for _, text := range texts {
		last := len(text) - 1
		switch {
		case strings.Contains(text, `" "`), last > 0 && text[0] == text[last] && (text[0] == '"' || text[0] == '\''), printedQuotes.MatchString(text):
			return fmt.Sprintf("the quotes become part of the value: %q; leave them out", shown(text))
		case strings.Contains(text, `\;`), strings.Contains(text, `\"`):
			return fmt.Sprintf("the backslashes become part of the value: %q; leave them out", shown(text))
		}
	}
	return ""
}

func findLineEnd(v value) string {
	if text := strings.Join(v.strs, ""); strings.ContainsAny(text, "\r\n") {
		return fmt.Sprintf(`the line end becomes part of the value: %q; write it in one line, or with ">-"`, shown(text))
	}
	return ""
}

var (
	// number is how names end that no host has: there is no top-level domain of digits (RFC 3696 section 2).
	number = regexp.MustCompile(`[.][0-9]+[.]$`)
	// instance is in names of service instances, which may have whatever people call them.
	instance = regexp.MustCompile(`[.]_(tcp|udp)[.]`)
)

func findNoHost(v value) string {
	if number.MatchString(v.target) || strings.Contains(v.target, ":") && !instance.MatchString(v.target) {
		return fmt.Sprintf("%q is an address, or has a port or the form of a URL, where the name of a host belongs; declare an address by an ARecord or AAAARecord", shown(v.target))
	}
	return ""
}

var (
	// issuer is a value of issue and its like (RFC 8659 section 4.2). All authorities have domain names with a dot.
	issuer = regexp.MustCompile(`^[ \t]*([A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+)?[ \t]*` +
		`(;[ \t]*(` + parameter + `(;[ \t]*` + parameter + `)*;?[ \t]*)?)?$`)
	reportURL = regexp.MustCompile(`^(mailto:|https?://).+`)
)

const parameter = `[A-Za-z0-9]+(-+[A-Za-z0-9]+)*[ \t]*=[ \t]*[!-:<-~]*[ \t]*`

func findBadCAA(v value) string {
	if !v.caa {
		return ""
	}
	joined := strings.Join(v.strs, "")
	switch v.tag {
	case "issue", "issuewild", "issuemail":
		if !issuer.MatchString(joined) {
			return fmt.Sprintf(`%q is neither an authority's domain name, such as letsencrypt.org, nor ";": no authority may issue (RFC 8659 section 4.2)`, shown(joined))
		}
	case "iodef":
		if !reportURL.MatchString(joined) {
			return fmt.Sprintf("%q is no URL that starts with mailto:, http:// or https:// (RFC 8659 section 4.4)", shown(joined))
		}
	case "issuevmc", "contactemail", "contactphone":
	default:
		return fmt.Sprintf("no authority knows the tag %q; those in use are issue, issuewild, issuemail and iodef", v.tag)
	}
	if v.flags != "0" && v.flags != "128" {
		return fmt.Sprintf("flags %s mean nothing: write 0, or 128 if authorities must know the tag", v.flags)
	}
	return ""
}

// shown keeps a warning readable.
func shown(text string) string {
	const most = 80
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
