package declaration

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// ReadRecord reads a record in a zone.
func ReadRecord(r v1beta1.Record, zone Apex) Declared {
	values := valuesOfRecord(r, zone.Name)
	owner, err := OwnerName(r.RecordName(), zone.Name)
	if err != nil {
		err = fmt.Errorf("spec.name: %w", err)
	}
	key := rrset.Key{Name: owner, Type: values.rrtype}
	ttl, ttlErr := effectiveTTL(r.RecordTTL(), zone.TTL)
	fields := fieldsOf(r)
	err = cmp.Or(specError(r), err, values.err, ttlErr, fields.checkPlacement(key, values.rdata), fields.checkApex(zone.Name, key))
	return values.declare(key, ttl, r.RecordName(), err)
}

// RecordData reads the DNS type of a record and its rdata in canonical form, sorted and without duplicates. Host names without a final
// dot are relative to the zone. The error names the field that is wrong and says what to write.
func RecordData(record v1beta1.Record, zone string) (rrtype uint16, rdata []string, err error) {
	origin, err := rrset.CanonicalName(zone)
	if err != nil {
		return 0, nil, fmt.Errorf("zone name: %w", err)
	}
	d := valuesOfRecord(record, origin)
	return d.rrtype, d.rdata, d.err
}

// RelativeTarget is the canonical name that a record's target stands for, and a remark for the user, when the target has a dot inside and
// none at the end: it may have been meant to be complete. Otherwise both are "".
func RelativeTarget(record v1beta1.Record, zone string) (host, remark string) {
	rrtype := RecordType(record)
	if r, typed := record.(*v1beta1.DNSRecord); typed && !rrset.HasRules(rrtype) {
		return relativeName(rrtype, r.Spec.Data, zone)
	}
	if _, has := rrset.HostOf(rrtype, ""); !has {
		return "", ""
	}
	origin, err := rrset.CanonicalName(zone)
	if err != nil {
		return "", ""
	}
	d := valuesOfRecord(record, origin)
	if d.err != nil || d.note == "" || len(d.rdata) != 1 {
		return "", ""
	}
	host, _ = rrset.HostOf(d.rrtype, d.rdata[0])
	return host, d.note
}

// relativeName is RelativeTarget for the first such name in some data.
func relativeName(rrtype uint16, data []string, zone string) (host, remark string) {
	origin, err := rrset.CanonicalName(zone)
	if err != nil {
		return "", ""
	}
	for i, text := range data {
		word := rrset.TargetOf(rrtype, text)
		if isAbsolute(word) || !strings.Contains(word, ".") {
			continue
		}
		if full, err := rrset.CanonicalName(word + "." + origin); err == nil {
			return full, fmt.Sprintf("spec.data[%d] %q has no final dot, so it is relative to the zone: %s", i, word, full)
		}
	}
	return "", ""
}

// recordValues is what one record says about its RRset.
type recordValues struct {
	rrtype uint16
	rdata  []string
	// spelled has the spelling of rdata that is not spelled in canonical form.
	spelled map[string]string
	// note is a remark for the user.
	note string
	err  error
}

func (d *recordValues) add(canonical, spelled string) {
	if d.rdata = append(d.rdata, canonical); spelled == canonical {
		return
	}
	if d.spelled == nil {
		d.spelled = map[string]string{}
	}
	d.spelled[canonical] = spelled
}

// RecordType is the DNS type of a record, 0 if it has none that can be declared.
func RecordType(record v1beta1.Record) uint16 {
	if r, ok := record.(*v1beta1.DNSRecord); ok {
		return rrset.DeclarableType(r.Spec.Type)
	}
	return v1beta1.KindOf(record).RRType
}

// valuesOfRecord is the one table of the ten kinds.
func valuesOfRecord(record v1beta1.Record, origin string) recordValues {
	switch r := record.(type) {
	case *v1beta1.ARecord:
		return addressValues(dns.TypeA, "spec.ipv4Address", r.Spec.IPv4Address, "spec.ipv4Addresses", r.Spec.IPv4Addresses)
	case *v1beta1.AAAARecord:
		return addressValues(dns.TypeAAAA, "spec.ipv6Address", r.Spec.IPv6Address, "spec.ipv6Addresses", r.Spec.IPv6Addresses)
	case *v1beta1.CNAMERecord:
		return hostValue(dns.TypeCNAME, "spec.target", r.Spec.Target, origin)
	case *v1beta1.NSRecord:
		return hostValue(dns.TypeNS, "spec.nameserver", r.Spec.Nameserver, origin)
	case *v1beta1.TXTRecord:
		return textValue(r.Spec.Text)
	case *v1beta1.MXRecord:
		return hostValue(dns.TypeMX, "spec.mailServer", r.Spec.MailServer, origin, numberField{"spec.priority", r.Spec.Priority})
	case *v1beta1.SRVRecord:
		return hostValue(dns.TypeSRV, "spec.target", r.Spec.Target, origin, numberField{"spec.priority", r.Spec.Priority},
			numberField{"spec.weight", r.Spec.Weight}, numberField{"spec.port", r.Spec.Port})
	case *v1beta1.CAARecord:
		return caaValue(r.Spec)
	case *v1beta1.PTRRecord:
		return hostValue(dns.TypePTR, "spec.target", r.Spec.Target, origin)
	case *v1beta1.DNSRecord:
		return typedValues(r.Spec.Type, r.Spec.Data, origin)
	}
	return recordValues{err: fmt.Errorf("%T is none of the ten record kinds", record)}
}

func addressValues(rrtype uint16, olderField, older, field string, newer []string) recordValues {
	d := recordValues{rrtype: rrtype, rdata: make([]string, 0, len(newer)+1)}
	add := func(value string) (err error) {
		value, err = rrset.Parse(rrset.Key{Type: rrtype}, value)
		d.rdata = append(d.rdata, value)
		return err
	}
	if older != "" {
		if err := add(older); err != nil {
			d.err = fmt.Errorf("%s: %w", olderField, err)
			return d
		}
	}
	for i, value := range newer {
		if err := add(value); err != nil {
			d.err = fmt.Errorf("%s[%d]: %w", field, i, err)
			return d
		}
	}
	if len(d.rdata) == 0 {
		d.err = fmt.Errorf("%s: there is no address", field)
	}
	return d.checkLimits(field)
}

// numberField is a 16-bit field in front of a host name.
type numberField struct {
	field string
	value int32
}

func hostValue(rrtype uint16, field, name, origin string, numbers ...numberField) recordValues {
	d := recordValues{rrtype: rrtype}
	out := make([]byte, 0, 6*len(numbers))
	for _, n := range numbers {
		if n.value < 0 || n.value > 65535 {
			d.err = fmt.Errorf("%s: %d is not a number from 0 to 65535", n.field, n.value)
			return d
		}
		out = append(strconv.AppendInt(out, int64(n.value), 10), ' ')
	}
	full, spelled, note, err := resolveHost(field, name, origin)
	if err == nil && full == "." && len(numbers) == 0 {
		err = fmt.Errorf(`%s: "." is the root of DNS and no host`, field)
	}
	if len(out) > 0 {
		full, spelled = string(out)+full, string(out)+spelled
	}
	d.note, d.err = note, err
	d.add(full, spelled)
	return d
}

func textValue(strs []string) recordValues {
	s, err := rrset.TXT(strs...)
	if err != nil {
		err = fmt.Errorf("spec.text: %w", err)
	}
	return recordValues{rrtype: dns.TypeTXT, rdata: []string{s}, err: err}.checkLimits("spec.text")
}

func caaValue(spec v1beta1.CAARecordSpec) recordValues {
	d := recordValues{rrtype: dns.TypeCAA}
	if spec.Flags < 0 || spec.Flags > 255 {
		d.err = fmt.Errorf("spec.flags: %d is not a number from 0 to 255", spec.Flags)
		return d
	}
	s, err := rrset.CAA(uint8(spec.Flags), spec.Tag, spec.Value)
	if err != nil {
		err = fmt.Errorf("spec: %w", err)
	}
	d.rdata, d.err = []string{s}, err
	return d
}

// checkLimits sorts the rdata, drops duplicates and checks the limits of an RRset.
func (d recordValues) checkLimits(field string) recordValues {
	if len(d.rdata) > 1 {
		slices.Sort(d.rdata)
		d.rdata = slices.Compact(d.rdata)
	}
	switch {
	case d.err != nil:
	case len(d.rdata) > rrset.MaxRecords:
		d.err = fmt.Errorf("%s: there are %d values; at most %d fit into an answer", field, len(d.rdata), rrset.MaxRecords)
	case rrset.Size(d.rrtype, d.rdata) > rrset.MaxSize:
		d.err = fmt.Errorf("%s: the data takes %d bytes; at most %d fit into an answer", field, rrset.Size(d.rrtype, d.rdata), rrset.MaxSize)
	}
	return d
}
