package zoneimport

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/masterfile"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// recordPlace is where a record was read: the line of a file, or a server, which has no lines.
type recordPlace struct {
	source string
	line   int
}

func (p recordPlace) String() string {
	if p.line == 0 {
		return p.source
	}
	return fmt.Sprintf("%s:%d", p.source, p.line)
}

// placedSet is an RRset with the place of its first record.
type placedSet struct {
	rrset.RRset
	place recordPlace
	// run is the run in which records of it came last.
	run int
}

// follow takes the TTL of another record, in the given run.
func (s *placedSet) follow(run int, ttl uint32) {
	if s.run != run {
		s.TTL, s.run = ttl, run
	}
}

// spell keeps how a record that was added last is spelled. A name is spelled as in the first record, and data as it comes first.
func (s *placedSet) spell(record masterfile.Record) {
	last := len(s.Rdata) - 1
	if record.Owner != "" && last == 0 {
		s.Spelling = &rrset.Spelling{Name: record.Owner}
	}
	if record.Spelled == "" || slices.Contains(s.Rdata[:last], record.Rdata) {
		return
	}
	s.Spelling = cmp.Or(s.Spelling, &rrset.Spelling{Name: s.Name})
	if s.Spelling.Rdata == nil {
		s.Spelling.Rdata = map[string]string{}
	}
	s.Spelling.Rdata[record.Rdata] = record.Spelled
}

func comparePlaced(a, b placedSet) int { return a.Key.Compare(b.Key) }

// zoneContent is what a server of the zone serves.
type zoneContent struct {
	// name is canonical.
	name     string
	soa      rrset.SOA
	soaPlace recordPlace
	// sets are in canonical order, without the SOA and what signing adds.
	sets []placedSet
	// records counts all that were read; signing counts those that signing added, and were left out; aged those with a time stamp
	// of Microsoft's DNS server.
	records, signing, aged int
}

// contentReader puts records together to a zone.
type contentReader struct {
	zoneContent
	limits wire.Limits
	bytes  int64
	found  map[rrset.Key]*placedSet
	report *differenceReport
	// run is the number of the run of records that are being added: those of one owner that follow each other in a file.
	run int
	// foreignSOA is where an SOA record was of another name.
	foreignSOA string
	// progress is called now and then with the number of records.
	progress func(records int)
}

// progressStep is after how many records progress is reported.
const progressStep = 100_000

// recordOverhead is what a record takes beside its text, in bytes.
const recordOverhead = 200

func newContentReader(zone string, limits wire.Limits, report *differenceReport, progress func(int)) *contentReader {
	return &contentReader{
		zoneContent: zoneContent{name: zone}, limits: limits, found: map[rrset.Key]*placedSet{}, report: report, progress: progress,
	}
}

// addRecord takes one record in canonical form. Of different TTLs in an RRset, BIND serves the first of the last run of
// records with that owner.
func (r *contentReader) addRecord(key rrset.Key, ttl uint32, rdata string, place recordPlace) error {
	if err := r.countRecord(len(key.Name) + len(rdata)); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	switch {
	case !rrset.IsSubdomain(key.Name, r.name):
		if key.Type == dns.TypeSOA {
			r.foreignSOA = fmt.Sprintf("; that on %s is the SOA record of %s: import that zone, or set $ORIGIN", place, key.Name)
		}
		r.report.leaveOut(place, key, "its name is outside the zone")
		return nil
	case rrset.IsServerMaintained(key.Type):
		r.signing++
		return nil
	}
	set := r.found[key]
	if set == nil {
		r.found[key] = &placedSet{rrset.RRset{Key: key, TTL: ttl, Rdata: []string{rdata}}, place, r.run}
		return nil
	}
	set.follow(r.run, ttl)
	set.Rdata = append(set.Rdata, rdata)
	return nil
}

// addSOA takes the zone's SOA record, which comes once.
func (r *contentReader) addSOA(soa rrset.SOA, place recordPlace) error {
	if r.soa.MName != "" && r.soa.Rdata() != soa.Rdata() {
		return fmt.Errorf("%s: the zone has a second SOA record; keep one", place)
	}
	r.soa, r.soaPlace = soa, place
	return nil
}

func (r *contentReader) countRecord(text int) error {
	r.records++
	r.bytes += recordOverhead + int64(text)
	switch {
	case r.records > r.limits.Records:
		return &wire.LimitError{Subject: "the zone", What: fmt.Sprintf("%d records", r.limits.Records), Flag: wire.RecordsFlag}
	case r.bytes > r.limits.Bytes:
		return &wire.LimitError{Subject: "the zone", What: fmt.Sprintf("%d bytes", r.limits.Bytes), Flag: wire.BytesFlag}
	case r.records%progressStep == 0:
		r.progress(r.records)
	}
	return nil
}

// finish returns the zone: sorted, without duplicates.
func (r *contentReader) finish() (*zoneContent, error) {
	if r.soa.MName == "" {
		return nil, fmt.Errorf("there is no SOA record of %s: is this the zone?%s", r.name, r.foreignSOA)
	}
	if r.found[rrset.Key{Name: r.name, Type: dns.TypeNS}] == nil {
		return nil, errors.New("the zone has no NS records at its apex; a zone needs at least one name server (RFC 1034 section 4.2.2)")
	}
	r.sets = make([]placedSet, 0, len(r.found))
	for _, set := range r.found {
		united := rrset.New(set.Key, set.TTL, set.Rdata...)
		united.Spelling = set.Spelling
		r.sets = append(r.sets, placedSet{RRset: united, place: set.place})
	}
	r.found = nil
	slices.SortFunc(r.sets, comparePlaced)
	return &r.zoneContent, nil
}
