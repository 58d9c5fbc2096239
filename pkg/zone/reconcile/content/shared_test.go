package content

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// sharedCopy is what a server holds that others write to as well, beside those of copies.
type sharedCopy struct {
	*copies
	held, theirs map[rrset.Key]rrset.RRset
	soa          rrset.SOA
}

var sharedAt = types.NamespacedName{Namespace: "dns", Name: "shared"}

func (c *sharedCopy) look() *observe.Mirror {
	c.soa.Serial++
	var sets []rrset.RRset
	for _, set := range c.held {
		sets = append(sets, set)
	}
	return observe.NewMirror("example.com.", c.soa, sets...)
}

// sync brings the server to what is declared, after those of copies.
func (c *sharedCopy) sync() {
	c.copies.sync(0) // Nothing is forgotten there.
	p := c.state.Primary(sharedAt, true, "")
	mirror := c.look()
	c.state.Compare(p, mirror, nil)
	for set := range outcomeOf(c.state.Changes(p, mirror.SOA)) {
		if set.Rdata == nil {
			delete(c.held, set.Key)
		} else {
			c.held[set.Key] = set
		}
	}
	after := c.look()
	if c.state.Compare(p, after, nil); c.state.Changes(p, after.SOA).HasChanges() {
		c.t.Fatalf("it still lacks %+v", c.state.Changes(p, after.SOA))
	}
	c.state.ForgetRetired(func(key rrset.Key, shared bool) bool {
		if shared {
			_, there := c.held[key]
			return !there
		}
		for _, held := range c.copies.held {
			if _, there := held[key]; there {
				return false
			}
		}
		return true
	}, c.soa.Serial, time.Now())
}

// What objects declare is on a server that others write to as well, and what these put there stays, also where the zone object has name
// servers of its own, or had: whatever comes and goes, in any order.
func TestWhatOthersWriteStays(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := &sharedCopy{copies: newCopies(t), held: map[rrset.Key]rrset.RRset{}, theirs: map[rrset.Key]rrset.RRset{}}
		for n := range 5 { // Of them objects declare n0 to n4 at times, and the zone object n0 to n2.
			set := rrset.New(rrset.Key{Name: fmt.Sprintf("n%d.example.com.", n), Type: dns.TypeTXT}, 60, `"theirs"`)
			c.theirs[set.Key] = set
		}
		address := rrset.New(rrset.Key{Name: "n9.example.com.", Type: dns.TypeA}, 60, "198.51.100.9")
		apex := rrset.New(rrset.Key{Name: "example.com.", Type: dns.TypeNS}, 60, "n9.example.com.")
		c.theirs[address.Key], c.theirs[apex.Key] = address, apex
		maps.Copy(c.held, c.theirs)
		for step := range 40 {
			if r.IntN(4) == 0 {
				c.zone = c.zone.DeepCopy()
				c.zone.Generation++
				c.zone.Spec.NameServerIPs = map[string]string{}
				for range r.IntN(3) {
					c.zone.Spec.NameServerIPs[fmt.Sprintf("n%d.example.com.", r.IntN(3))] = "192.0.2.1"
				}
				if r.IntN(3) == 0 {
					c.zone.Spec.NameServerIPs["n9.example.com."] = "192.0.2.1"
				}
				c.zones.Set(c.zone)
			}
			for range r.IntN(3) {
				c.zones.Set(c.record(r))
			}
			c.sync()
			want := maps.Clone(c.theirs)
			for set := range c.state.desired.All() {
				if !c.state.desired.IsApexData(set.Key) {
					want[set.Key] = set
				}
			}
			if diff := cmp.Diff(want, c.held); diff != "" {
				t.Fatalf("seed %d, step %d (-want +got):\n%s", seed, step, diff)
			}
		}
	}
}
