package masterfile

import (
	"strings"

	"github.com/miekg/dns"
)

// batch is records of one owner that BIND adds to the zone in one step.
type batch struct {
	records []Record
	// ttls are the TTLs of the RRsets: the first one that a record of each had.
	ttls map[batchKey]uint32
	// hosts are the name servers of the NS records.
	hosts map[string]struct{}
	size  int
}

// batchKey tells the RRsets of one owner apart: of signatures, each signed type has its own.
type batchKey struct {
	rrtype uint16
	covers string
}

// maxBatch is after how many bytes of data BIND does not wait for the owner's last record.
const maxBatch = 65560

// put adds a record, and returns its TTL: that of its RRset if there is one.
func (b *batch) put(record Record, ttl uint32, data rdata, words []word) uint32 {
	if b.ttls == nil {
		b.ttls, b.hosts = map[batchKey]uint32{}, map[string]struct{}{}
	}
	key := batchKey{rrtype: record.Type}
	if (record.Type == dns.TypeRRSIG || record.Type == dns.TypeSIG) && len(words) > 0 {
		key.covers = strings.ToUpper(words[0].text)
	}
	if prior, found := b.ttls[key]; found {
		ttl = prior
	}
	b.ttls[key], record.TTL = ttl, ttl
	if record.Type == dns.TypeNS {
		for _, host := range data.hosts {
			b.hosts[host] = struct{}{}
		}
	}
	b.size += data.size
	b.records = append(b.records, record)
	return ttl
}

func (b *batch) delegatesTo(host string) bool {
	_, found := b.hosts[host]
	return found
}

func (b *batch) flush(r *reader) error {
	if len(b.records) == 0 {
		return nil
	}
	run := r.nextRun()
	for _, record := range b.records {
		record.Run = run
		if err := r.emit(record); err != nil {
			return err
		}
	}
	clear(b.ttls)
	clear(b.hosts)
	b.records, b.size = b.records[:0], 0
	return nil
}
