package zoneimport

import (
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// recordsOf returns the records that declare an RRset: one for A, AAAA, CNAME and the types without a kind of their own, one for each value
// of the other kinds. It returns nil if the kind cannot express the name or a value.
func recordsOf(set rrset.RRset, zone string, ttl *int64) []v1beta1.Record {
	name, ok := relativeName(set.Name, zone)
	if !ok {
		return nil
	}
	if spelled := set.SpelledName(); name != "@" && len(spelled) == len(set.Name) {
		name = spelled[:len(name)]
	}
	common := v1beta1.RecordCommon{Name: name, TTL: ttl}
	groups, spelled := [][]string{set.Rdata}, [][]string{spelledValues(set)}
	switch set.Type {
	case dns.TypeCNAME, dns.TypeNS, dns.TypePTR, dns.TypeMX, dns.TypeSRV, dns.TypeTXT, dns.TypeCAA:
		groups, spelled = slices.Collect(slices.Chunk(set.Rdata, 1)), slices.Collect(slices.Chunk(spelled[0], 1))
	}
	records := make([]v1beta1.Record, 0, len(groups))
	for i, values := range groups {
		record := newRecord(set.Type, common, spelled[i])
		if record == nil || !saysSame(record, zone, set.Type, values) {
			return nil
		}
		records = append(records, record)
	}
	return records
}

// relativeName returns an owner name as spec.name has it.
func relativeName(owner, zone string) (string, bool) {
	if owner == zone {
		return "@", true
	}
	name := strings.TrimSuffix(owner, "."+zone)
	if !fitsOwner(name) {
		return "", false
	}
	again, err := declaration.OwnerName(name, zone)
	return name, err == nil && again == owner
}

// saysSame reports whether the controller reads in a record what was written into it.
func saysSame(record v1beta1.Record, zone string, rrtype uint16, values []string) bool {
	gotType, got, err := declaration.RecordData(record, zone)
	return err == nil && gotType == rrtype && slices.Equal(got, values)
}

// newRecord returns the record of a kind with values in canonical form, nil if its fields do not take them.
func newRecord(rrtype uint16, common v1beta1.RecordCommon, values []string) v1beta1.Record {
	switch rrtype {
	case dns.TypeA:
		return &v1beta1.ARecord{Spec: v1beta1.ARecordSpec{RecordCommon: common, IPv4Addresses: values}}
	case dns.TypeAAAA:
		if slices.ContainsFunc(values, func(a string) bool { return !fitsAddress(a) }) {
			return nil
		}
		return &v1beta1.AAAARecord{Spec: v1beta1.AAAARecordSpec{RecordCommon: common, IPv6Addresses: values}}
	case dns.TypeTXT:
		return newTXT(common, values[0])
	case dns.TypeCAA:
		return newCAA(common, values[0])
	case dns.TypeCNAME, dns.TypeNS, dns.TypePTR, dns.TypeMX, dns.TypeSRV:
		return newHostRecord(rrtype, common, strings.Fields(values[0]))
	}
	return &v1beta1.DNSRecord{Spec: v1beta1.DNSRecordSpec{RecordCommon: common, Type: rrset.TypeName(rrtype), Data: values}}
}

// newHostRecord returns the record of a kind whose rdata are numbers and a host name.
func newHostRecord(rrtype uint16, common v1beta1.RecordCommon, fields []string) v1beta1.Record {
	host := fields[len(fields)-1]
	numbers := make([]int32, len(fields)-1)
	for i := range numbers {
		n, err := strconv.ParseUint(fields[i], 10, 16)
		if err != nil {
			return nil
		}
		numbers[i] = int32(n)
	}
	none := host == "." && (rrtype == dns.TypeSRV || rrtype == dns.TypeMX && numbers[0] == 0)
	if !none && !fitsHost(host) {
		return nil
	}
	switch rrtype {
	case dns.TypeCNAME:
		return &v1beta1.CNAMERecord{Spec: v1beta1.CNAMERecordSpec{RecordCommon: common, Target: host}}
	case dns.TypePTR:
		return &v1beta1.PTRRecord{Spec: v1beta1.PTRRecordSpec{RecordCommon: common, Target: host}}
	case dns.TypeNS:
		return &v1beta1.NSRecord{Spec: v1beta1.NSRecordSpec{RecordCommon: common, Nameserver: host}}
	case dns.TypeMX:
		return &v1beta1.MXRecord{Spec: v1beta1.MXRecordSpec{RecordCommon: common, Priority: numbers[0], MailServer: host}}
	}
	return &v1beta1.SRVRecord{Spec: v1beta1.SRVRecordSpec{RecordCommon: common, Priority: numbers[0], Weight: numbers[1], Port: numbers[2], Target: host}}
}

func newTXT(common v1beta1.RecordCommon, rdata string) v1beta1.Record {
	texts, err := rrset.ParseStrings(rdata)
	if err != nil || !fitsTexts(texts) {
		return nil
	}
	return &v1beta1.TXTRecord{Spec: v1beta1.TXTRecordSpec{RecordCommon: common, Text: texts}}
}

func newCAA(common v1beta1.RecordCommon, rdata string) v1beta1.Record {
	fields := strings.SplitN(rdata, " ", 3)
	if len(fields) != 3 {
		return nil
	}
	flags, err := strconv.ParseUint(fields[0], 10, 8)
	value, errValue := rrset.ParseStrings(fields[2])
	if err != nil || errValue != nil || len(value) != 1 || !fitsCAA(fields[1], value[0]) {
		return nil
	}
	return &v1beta1.CAARecord{Spec: v1beta1.CAARecordSpec{RecordCommon: common, Flags: int32(flags), Tag: fields[1], Value: value[0]}}
}
