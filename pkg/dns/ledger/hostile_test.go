package ledger

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// hostileName is an owner name with many values of many types, and with a ledger that is full of other owners.
func hostileName(types, values, owners int) (name string, m plan.Map) {
	name, m = "www."+zone, plan.Map{}
	var entries []string
	for n := range owners {
		h := Hash{byte(n), byte(n >> 8)}
		entries = append(entries, fmt.Sprintf(`"lockstep1 %x" "TYPE65000 60 %s"`, n, base64.RawURLEncoding.EncodeToString(h[:])))
	}
	record, _ := RecordName(zone, name)
	m[rrset.Key{Name: record, Type: dns.TypeTXT}] = rrset.New(rrset.Key{Name: record, Type: dns.TypeTXT}, TTL, entries...)
	for t := range types {
		var all []string
		for n := range values {
			all = append(all, fmt.Sprintf(`\# 2 %04x`, n))
		}
		key := rrset.Key{Name: name, Type: 65000 + uint16(t)}
		m[key] = rrset.New(key, TTL, all...)
	}
	return name, m
}

// TestHostileLedger: a name costs as much as there is at it, not so many values times so many owners times so many types. That would be hours.
func TestHostileLedger(t *testing.T) {
	const patience = 2 * time.Minute // Far more than any machine needs.
	name, m := hostileName(100, 400, 1300)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		v := owner{"mine", plan.Map{}}.view(m).Remember()
		var d plan.Difference
		d.Update(slices.Values([]string{name, v.Twin(name)}), v, m, v.IsDeletable)
		if changes := d.Changes(rrset.SOA{}, rrset.SOA{}); changes.HasChanges() {
			t.Errorf("changes %.1000v", changes)
		}
		for key := range m {
			v.IsOthers(key)
			v.Have(key, rrset.RRset{Key: key})
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatalf("one name has not been compared within %s", patience)
	}
}

// TestManyOwnersInAMessage: a status has room for a sentence.
func TestManyOwnersInAMessage(t *testing.T) {
	_, m := hostileName(0, 0, 1300)
	o := owner{"mine", mapOf(set("www", "CNAME", 300, "a.test."))}
	blocked := o.view(m).Blocked("www." + zone)
	if len(blocked) != 1 || blocked[0].Why != "0 (TYPE65000), 1 (TYPE65000), 10 (TYPE65000) and 1297 more published there first what cannot stand beside it" {
		t.Errorf("blocked %.1000v", blocked)
	}
}
