package validate

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Anchors are trust anchors: DS and DNSKEY records, by the canonical name of their zone.
type Anchors map[string][]dns.RR

// maxAnchorBytes bounds a file of trust anchors.
const maxAnchorBytes = 1 << 20

// ParseAnchors reads DS and DNSKEY records, as lines of a zone file.
func ParseAnchors(text []byte) (Anchors, error) {
	if len(text) > maxAnchorBytes {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", len(text), maxAnchorBytes)
	}
	all := Anchors{}
	parser := dns.NewZoneParser(bytes.NewReader(text), ".", "")
	parser.SetDefaultTTL(0)
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		name, err := rrset.CanonicalName(rr.Header().Name)
		if err != nil {
			return nil, err
		}
		switch rr.(type) {
		case *dns.DS, *dns.DNSKEY:
			all[name] = append(all[name], rr)
		default:
			return nil, fmt.Errorf("%s %s: only DS and DNSKEY records are trust anchors", name, dns.Type(rr.Header().Rrtype))
		}
	}
	return all, parser.Err()
}

// AnchorFile follows a file with trust anchors. It is safe for concurrent use.
type AnchorFile struct {
	path string

	mu   sync.Mutex
	text []byte
	last *Anchors
}

// OpenAnchors reads a file with trust anchors.
func OpenAnchors(path string) (*AnchorFile, error) {
	f := &AnchorFile{path: path, last: new(Anchors)}
	return f, f.Reload()
}

// Reload reads the file again. If that fails, the anchors stay as they are.
func (f *AnchorFile) Reload() error {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	same := f.text != nil && bytes.Equal(text, f.text)
	f.mu.Unlock()
	if same {
		return nil
	}
	anchors, err := ParseAnchors(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text, f.last = append([]byte{}, text...), &anchors
	return nil
}

// Anchors are those last read. The pointer changes with them.
func (f *AnchorFile) Anchors() *Anchors {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}
