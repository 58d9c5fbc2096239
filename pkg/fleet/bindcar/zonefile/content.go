package zonefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// maxTTL is the greatest TTL in seconds (RFC 2181 section 8).
const maxTTL = 1<<31 - 1

const defaultTTL = 3600

// Write writes a zone's complete content as a zone file (RFC 1035 section 5). Every record is parsed and printed again, so
// that no value can smuggle in a directive or another record.
func Write(file, zone string, config bindcar.ZoneConfig) error {
	content := zoneContent{origin: zone + ".", ttl: cmp.Or(config.TTL, defaultTTL)}
	soa, err := content.parseSOA(config.SOA)
	if err != nil {
		return err
	}
	err = replaceFile(file, 0o640, true, func(w io.Writer) error { return content.write(w, soa, config) })
	if _, ok := errors.AsType[*httperror.Error](err); err != nil && !ok {
		return fmt.Errorf("writing zone %s: %w", zone, err)
	}
	return err
}

type zoneContent struct {
	origin string
	ttl    uint32
	// apexNS is set once a record was an NS at the apex.
	apexNS bool
}

func (c *zoneContent) write(w io.Writer, soa *dns.SOA, config bindcar.ZoneConfig) error {
	if _, err := fmt.Fprintln(w, soa); err != nil {
		return err
	}
	for i, record := range config.Records {
		rr, err := c.parseRecord(record)
		if err != nil {
			return httperror.BadRequest(fmt.Sprintf("zoneConfig.records[%d]", i), err)
		}
		if err := writeRecord(w, rr); err != nil {
			return err
		}
	}
	if c.apexNS {
		return nil
	}
	return c.writeNameServers(w, soa.Ns, config)
}

// writeRecord writes types without rules of their own in the form of RFC 3597 section 5: named does not know all words that others have, such as
// the names of algorithms and of keys of services.
func writeRecord(w io.Writer, rr dns.RR) error {
	if !rrset.HasRules(rr.Header().Rrtype) {
		raw := &dns.RFC3597{}
		if err := raw.ToRFC3597(rr); err != nil {
			return err
		}
		rr = raw
	}
	_, err := fmt.Fprintln(w, rr)
	return err
}

// writeNameServers writes the apex NS records without which named loads no zone.
func (c *zoneContent) writeNameServers(w io.Writer, primary string, config bindcar.ZoneConfig) error {
	servers := config.NameServers
	if len(servers) == 0 {
		servers = []string{primary}
	}
	for i, server := range servers {
		field := fmt.Sprintf("zoneConfig.nameServers[%d]", i)
		rr, err := c.parseRecord(bindcar.Record{Name: "@", Type: "NS", Value: dns.Fqdn(server)})
		if err != nil {
			return httperror.BadRequest(field, err)
		}
		if _, err := fmt.Fprintln(w, rr); err != nil {
			return err
		}
		address := firstValue(config.NameServerIPs, server, dns.Fqdn(server), strings.TrimSuffix(server, "."))
		if address == "" || !dns.IsSubDomain(c.origin, dns.Fqdn(server)) {
			continue
		}
		kind := "A"
		if strings.Contains(address, ":") {
			kind = "AAAA"
		}
		if rr, err = c.parseRecord(bindcar.Record{Name: dns.Fqdn(server), Type: kind, Value: address}); err != nil {
			return httperror.BadRequest("zoneConfig.nameServerIps", err)
		}
		if _, err := fmt.Fprintln(w, rr); err != nil {
			return err
		}
	}
	return nil
}

func firstValue(m map[string]string, keys ...string) string {
	for _, key := range keys {
		if value := m[key]; value != "" {
			return value
		}
	}
	return ""
}

func (c *zoneContent) parseSOA(in *bindcar.SOA) (*dns.SOA, error) {
	if in == nil {
		return nil, httperror.BadRequest("zoneConfig.soa", errors.New("a primary zone needs an SOA"))
	}
	mname, err := rrset.CanonicalName(in.PrimaryNS)
	if err != nil || in.PrimaryNS == "" {
		return nil, httperror.BadRequest("zoneConfig.soa.primaryNs", fmt.Errorf("%q is not a domain name", in.PrimaryNS))
	}
	rname, err := rrset.CanonicalName(mailboxName(in.AdminEmail))
	if err != nil || in.AdminEmail == "" {
		return nil, httperror.BadRequest("zoneConfig.soa.adminEmail", fmt.Errorf("%q is not a mailbox", in.AdminEmail))
	}
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: c.origin, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: c.ttl},
		Ns:  mname, Mbox: rname, Serial: in.Serial,
		Refresh: in.Refresh, Retry: in.Retry, Expire: in.Expire, Minttl: in.NegativeTTL,
	}, nil
}

// mailboxName turns "a.b@c." into a domain name, "a\.b.c." (RFC 1035 section 8).
func mailboxName(email string) string {
	local, domain, ok := strings.Cut(email, "@")
	if !ok {
		return email
	}
	return strings.ReplaceAll(local, ".", `\.`) + "." + domain
}

func (c *zoneContent) parseRecord(in bindcar.Record) (dns.RR, error) {
	name, err := c.ownerName(in.Name)
	if err != nil {
		return nil, err
	}
	kind, ok := rrset.ParseType(in.Type)
	if !ok || kind == dns.TypeSOA || kind >= dns.TypeTKEY && kind <= dns.TypeANY || kind == dns.TypeOPT {
		return nil, fmt.Errorf("type: %q cannot stand in a zone", in.Type)
	}
	value := in.Value
	if in.Priority != nil && (kind == dns.TypeMX || kind == dns.TypeSRV) {
		value = strconv.Itoa(int(*in.Priority)) + " " + value
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return nil, errors.New("value: must be one line")
	}
	rr, ok := c.parseValue(kind, value)
	if !ok {
		return nil, fmt.Errorf("value: %q is not the data of a %s record", in.Value, in.Type)
	}
	rr.Header().Name = name
	if in.TTL != nil {
		if *in.TTL > maxTTL {
			return nil, fmt.Errorf("ttl: %d is greater than %d", *in.TTL, maxTTL)
		}
		rr.Header().Ttl = *in.TTL
	}
	if !holds(rr, value) {
		return nil, fmt.Errorf("value: %q is not the data of a %s record", in.Value, in.Type)
	}
	c.apexNS = c.apexNS || kind == dns.TypeNS && name == c.origin
	return rr, nil
}

// parseValue makes an RR. Names in the value are relative to the zone, as in any zone file.
func (c *zoneContent) parseValue(kind uint16, value string) (dns.RR, bool) {
	if !rrset.HasRules(kind) {
		rr, err := rrset.ParseRR(dns.RR_Header{Name: ".", Rrtype: kind, Class: dns.ClassINET, Ttl: c.ttl}, value, c.origin)
		return rr, err == nil
	}
	return dns.NewZoneParser(strings.NewReader(fmt.Sprintf(". %d IN %s %s\n", c.ttl, dns.Type(kind), value)), c.origin, "").Next()
}

// holds reports whether a record has all of a value, and can be written: one without data cannot. named refuses a zone for one line.
func holds(rr dns.RR, value string) bool {
	if rrset.HasRules(rr.Header().Rrtype) {
		line := rr.String()
		again, ok := dns.NewZoneParser(strings.NewReader(line+"\n"), ".", "").Next()
		return ok && again.String() == line
	}
	words, raw := strings.Fields(value), &dns.RFC3597{}
	return raw.ToRFC3597(rr) == nil && (len(words) < 2 || words[0] != `\#` || strings.EqualFold(strings.Join(words[2:], ""), raw.Rdata))
}

func (c *zoneContent) ownerName(name string) (string, error) {
	switch {
	case name == "@" || name == "":
		return c.origin, nil
	case !strings.HasSuffix(name, ".") || strings.HasSuffix(name, `\.`):
		name += "." + c.origin
	}
	spelled, err := rrset.SpelledName(name)
	if err != nil || !dns.IsSubDomain(c.origin, spelled) {
		return "", fmt.Errorf("name: %q is not a name in zone %s", name, c.origin)
	}
	if dns.CanonicalName(spelled) == c.origin {
		return c.origin, nil
	}
	return spelled, nil
}
