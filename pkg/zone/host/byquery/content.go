// Package byquery reads a zone from a server that allows no transfer: by a question for each RRset that is declared, or was. What nobody
// ever declared stays unknown there. It asks no more than it must: what is known to be as it was is not asked again.
package byquery

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Ask asks a server for the SOA of a zone and for RRsets.
type Ask func(ctx context.Context, questions ...observe.Question) observe.Observation

// Content is what is known of one zone on one server between passes. The zero value knows nothing.
type Content struct {
	// sets are the answers that hold for soa; without data for what is not there.
	soa  rrset.SOA
	sets plan.Map
	// mirror is made of them.
	mirror *observe.Mirror
}

// Forget has everything asked anew.
func (c *Content) Forget() { *c = Content{} }

// Knows reports whether there is an answer about a key.
func (c *Content) Knows(key rrset.Key) bool {
	_, known := c.sets[key]
	return known
}

// Written notes that an update which was applied to the zone with the SOA from, and to no other (a compare-and-swap), has left it
// with the SOA to. Only what may be answered otherwise since has to be asked again: what the update was to change, and what a wildcard has
// answered for, or may from now on.
func (c *Content) Written(from, to rrset.SOA, changed iter.Seq[rrset.Key]) {
	if c.soa != from || from == to || c.mirror == nil {
		return
	}
	c.soa = to
	names, parents := map[string]bool{}, map[string]bool{}
	for key := range changed {
		delete(c.sets, key)
		// A wildcard answers for no name that exists, if only because of one below it (RFC 4592 section 2.2).
		for name := range rrset.NamesBelow(c.mirror.Zone, key.Name) {
			names[name] = true
		}
		if parent, ok := strings.CutPrefix(key.Name, "*."); ok {
			parents[parent] = true
		}
	}
	maps.DeleteFunc(c.sets, func(key rrset.Key, _ rrset.RRset) bool {
		if names[key.Name] || len(parents) == 0 {
			return names[key.Name]
		}
		for name := range rrset.NamesBelow(c.mirror.Zone, key.Name) {
			if parents[rrset.ParentName(name)] {
				return true
			}
		}
		return false
	})
}

// Read asks for what is not known of the keys. want has what should be there. The observation's Mirror has nothing but these RRsets. If
// the zone has changed meanwhile, its SOA is the one from before: whoever relies on that is refused, and reads again.
func (c *Content) Read(ctx context.Context, zone string, ask Ask, keys iter.Seq[rrset.Key], want plan.Content) observe.Observation {
	before := ask(ctx)
	before.Mirror = nil
	if before.Err != nil || !before.Authoritative {
		return before
	}
	if c.soa != before.SOA {
		c.sets = nil
	}
	sets, missing := plan.Map{}, []rrset.Key{}
	for key := range keys {
		if set, known := c.sets[key]; known {
			sets[key] = set
		} else {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 && len(sets) == len(c.sets) && c.mirror != nil && c.mirror.SOA == before.SOA {
		before.Mirror = c.mirror
		return before
	}
	after := before
	if len(missing) > 0 {
		if after = c.askMissing(ctx, zone, ask, missing, want, sets); after.Err != nil || !after.Authoritative {
			c.Forget()
			after.Mirror = nil
			return after
		}
	}
	after.SOA, after.Serial = before.SOA, before.Serial
	c.soa, c.sets = before.SOA, sets
	after.Mirror = newMirror(zone, before.SOA, sets)
	c.mirror = after.Mirror
	return after
}

// askMissing asks for keys, and adds the answers to sets.
func (c *Content) askMissing(ctx context.Context, zone string, ask Ask, missing []rrset.Key, want plan.Content, sets plan.Map) observe.Observation {
	seen := askFor(ctx, ask, missing, want, sets)
	if seen.Err != nil || !seen.Authoritative {
		return seen
	}
	var above []rrset.Key
	for _, key := range missing {
		if set, _ := want.Get(key); len(sets[key].Rdata) > 0 && !sets[key].Equal(set) {
			above = append(above, wildcardsAbove(zone, key)...)
		}
	}
	if len(above) == 0 {
		return seen
	}
	wildcards := plan.Map{}
	if seen = askFor(ctx, ask, above, want, wildcards); seen.Err != nil || !seen.Authoritative {
		return seen
	}
	for _, key := range missing {
		set, _ := want.Get(key)
		for _, wildcard := range wildcardsAbove(zone, key) {
			if data := wildcards[wildcard]; len(data.Rdata) > 0 && !sets[key].Equal(set) && sets[key].TTL == data.TTL && slices.Equal(sets[key].Rdata, data.Rdata) {
				sets[key] = rrset.RRset{Key: key} // It is answered, and not there (RFC 4592 section 4.1).
			}
		}
	}
	return seen
}

// askFor asks for keys and adds the answers to sets. A question without an answer is the observation's error.
func askFor(ctx context.Context, ask Ask, keys []rrset.Key, want plan.Content, sets plan.Map) observe.Observation {
	questions := make([]observe.Question, len(keys))
	for i, key := range keys {
		set, _ := want.Get(key)
		questions[i] = observe.Question{Key: key, Want: set}
	}
	seen := ask(ctx, questions...)
	if seen.Err != nil || seen.Mirror == nil {
		return seen
	}
	for _, key := range keys {
		asked, known := seen.Mirror.Asked(key)
		if !known || asked.Err != nil {
			seen.Err = &wire.Error{Op: "query", Server: seen.Server.String(), Zone: key.Name, Err: asked.Err}
			if asked.Err != nil {
				seen.Err = asked.Err
			}
			return seen
		}
		set, _ := seen.Mirror.Get(key)
		set.Key = key
		sets[key] = set
	}
	return seen
}

// wildcardsAbove are the wildcards by which a server may answer for a key that is not there.
func wildcardsAbove(zone string, key rrset.Key) (above []rrset.Key) {
	for name := range rrset.NamesBelow(zone, key.Name) {
		if wildcard := "*." + rrset.ParentName(name); wildcard != key.Name {
			above = append(above, rrset.Key{Name: wildcard, Type: key.Type})
		}
	}
	return above
}

func newMirror(zone string, soa rrset.SOA, sets plan.Map) *observe.Mirror {
	var held []rrset.RRset
	for _, set := range sets {
		if len(set.Rdata) > 0 {
			held = append(held, set)
		}
	}
	return observe.NewMirror(zone, soa, held...)
}
