package byquery

import (
	"context"
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// maxCompared is how many RRsets are asked for at a time: whoever waits for the answers has more to do.
const maxCompared = 1000

// Continue asks for more of what a server with the content want answers. It returns nil once all of that was seen there. It may be
// continued with later content: what was equal follows the same changes.
func Continue(ctx context.Context, c *host.Comparison, ask Ask, want *observe.Mirror) error {
	var questions []observe.Question
	left := 0
	for set := range want.All() {
		if _, known := c.Equal[set.Key]; known || !isAnswered(want, set.Key) {
			continue
		}
		if left++; left <= maxCompared {
			questions = append(questions, observe.Question{Key: set.Key, Want: set})
		}
	}
	if left == 0 {
		return nil
	}
	seen := ask(ctx, questions...)
	switch {
	case seen.Err != nil:
		return seen.Err
	case seen.Mirror == nil || seen.Serial != want.SOA.Serial:
		return host.ErrChanged
	}
	if c.Equal == nil {
		c.Equal = map[rrset.Key]struct{}{}
	}
	for _, q := range questions {
		if err := judge(&seen, q); err != nil {
			return err
		}
		c.Equal[q.Key] = struct{}{}
	}
	if left -= len(questions); left > 0 {
		return fmt.Errorf("%d RRsets have still to be compared with the primaries'", left)
	}
	return nil
}

// judge is nil if the answer to a question shows, for the SOA of the observation, what should be there.
func judge(seen *observe.Observation, q observe.Question) error {
	asked, _ := seen.Mirror.Asked(q.Key)
	at, known := seen.SeenAt(q.Key)
	have, _ := seen.Mirror.Get(q.Key)
	switch {
	case asked.Err != nil:
		return asked.Err
	case !known || !at.Equal(seen.At):
		return host.ErrChanged
	case q.Differs(have):
		return fmt.Errorf("%w: %s", host.ErrDiffers, q.Key)
	}
	return nil
}

// isAnswered reports whether a server with the content answers with an RRset: servers maintain some themselves; at and below a delegation
// there is a referral, which has nothing but its NS records for certain (RFC 1034 section 4.3.2), and below a DNAME nothing is (RFC 6672
// section 2.4).
func isAnswered(content *observe.Mirror, k rrset.Key) bool {
	has := func(name string, rrtype uint16) bool {
		_, there := content.Get(rrset.Key{Name: name, Type: rrtype})
		return there
	}
	if rrset.IsServerMaintained(k.Type) || k.Name != content.Zone && has(k.Name, dns.TypeNS) && k.Type != dns.TypeNS && k.Type != dns.TypeDS {
		return false
	}
	for below := range rrset.NamesBelow(content.Zone, k.Name) {
		name := rrset.ParentName(below)
		if has(name, dns.TypeDNAME) || name != content.Zone && has(name, dns.TypeNS) {
			return false
		}
	}
	return true
}
