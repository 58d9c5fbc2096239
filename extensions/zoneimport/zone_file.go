package zoneimport

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
)

// stdinName is the name that stands for standard input.
const stdinName = "-"

// fileRemedy is what always helps with a file that BIND loads.
const fileRemedy = "correct it, or let BIND write the zone as one plain file: named-compilezone -f text -F text -s full -o plain.zone %s %s"

// readZoneFile reads a zone file (RFC 1035 section 5).
func (r *contentReader) readZoneFile(stdin io.Reader, name, includeFrom string) error {
	text, err := readZoneText(stdin, name, r.limits.Bytes)
	if err != nil {
		return err
	}
	if name == stdinName {
		name = "<stdin>"
	}
	zoneFile := newLineReader(name, text)
	files := &openFiles{stack: []*lineReader{zoneFile}, limit: r.limits.Bytes}
	parser := dns.NewZoneParser(zoneFile, r.name, "")
	if ttl, ok := minimumTTL(text, r.name); ok {
		parser.SetDefaultTTL(ttl)
	}
	if includeFrom != "" {
		folder, err := openIncludeFolder(includeFrom, files)
		if err != nil {
			return err
		}
		defer folder.root.Close()
		parser.SetIncludeAllowed(true)
		parser.SetIncludeFS(folder)
	}
	buffer := make([]byte, dns.MaxMsgSize)
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		if err := r.addParsed(rr, files.recordPlace(), buffer); err != nil {
			return err
		}
	}
	if err := parser.Err(); err != nil {
		return describeParseError(err, files.errorPlace(err), r.name)
	}
	return nil
}

// minimumTTL returns what BIND uses where neither a record nor a $TTL sets a TTL: the last field of an SOA that comes first.
func minimumTTL(text []byte, zone string) (ttl uint32, ok bool) {
	parser := dns.NewZoneParser(newLineReader("", text), zone, "")
	parser.SetDefaultTTL(0)
	if rr, ok := parser.Next(); ok {
		if soa, ok := rr.(*dns.SOA); ok {
			return min(soa.Minttl, rrset.MaxTTL), true
		}
	}
	return 0, false
}

// addParsed takes a record of a file. It is packed and unpacked, so that different spellings are the same data.
func (r *contentReader) addParsed(rr dns.RR, place recordPlace, buffer []byte) error {
	h := rr.Header()
	if h.Class != dns.ClassINET {
		if err := r.countRecord(len(h.Name)); err != nil { // $GENERATE makes as many of these as of others.
			return fmt.Errorf("%s: %w", place, err)
		}
		r.report.leaveOut(place, rrset.Key{Name: dns.CanonicalName(h.Name), Type: h.Rrtype},
			fmt.Sprintf("its class is %s, and zones here have class IN", dns.Class(h.Class)))
		return nil
	}
	n, err := dns.PackRR(rr, buffer, 0, nil, false)
	if err == nil {
		rr, _, err = dns.UnpackRR(buffer[:n], 0)
	}
	if err == nil && rr.Header().Rdlength == 0 {
		err = errors.New("there is no data")
	}
	if err != nil {
		return fmt.Errorf("%s: %s %s: %w", place, h.Name, dns.Type(h.Rrtype), err)
	}
	if soa, ok := rr.(*dns.SOA); ok {
		return r.addSOA(dns.CanonicalName(h.Name), rrset.FromSOA(soa), place)
	}
	key, ttl, rdata := rrset.FromRR(rr)
	return r.addRecord(key, ttl, rdata, place)
}

// parserText is how miekg/dns words an error; the position is known better here.
var parserText = regexp.MustCompile(`(?s)^(?:.*?: )?dns: (.*) at line: \d+:\d+$`)

// describeParseError returns what is wrong with a file, where, and what to do.
func describeParseError(err error, place recordPlace, zone string) error {
	text := err.Error()
	if m := parserText.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	remedy := fmt.Sprintf(fileRemedy, zone, place.source)
	if strings.HasPrefix(text, "$INCLUDE directive not allowed") {
		text, remedy = "$INCLUDE reads other files, which is not allowed", "name the folder that it may read from with --include-from"
	}
	return fmt.Errorf("%s: %s; %s", place, manifest.Printable(text), remedy)
}

// readZoneText reads a file of limited size.
func readZoneText(stdin io.Reader, name string, limit int64) ([]byte, error) {
	if name == stdinName {
		return readLimited(stdin, "standard input", limit)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the zone file: %w", err)
	}
	defer file.Close()
	return readLimited(file, name, limit)
}

func readLimited(r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s has more than %d bytes, the limit of --max-zone-bytes", name, limit)
	}
	return text, nil
}
