package kinds_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// What a new kind of place takes: this type, for a zone file for each zone, which nobody serves. kinds_test.go registers it and runs the
// suite over it.

// zoneFiles are zones in a directory. It implements host.BackendKind and host.Backend.
type zoneFiles struct {
	dir, owner string
	mu         *sync.Mutex
}

// record is a line of a file: a record, and in a comment who put it there.
type record struct {
	rrset.RRset
	owner string
}

func (f zoneFiles) path(zone string) string { return filepath.Join(f.dir, zone+"zone") }

// edit has change make the records of a zone what they are then, if it returns no error.
func (f zoneFiles) edit(zone string, change func([]record) ([]record, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := os.ReadFile(f.path(zone))
	if err != nil && !os.IsNotExist(err) {
		return &host.Error{Reason: "Unreadable", Temporary: true, Err: err}
	}
	var records []record
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndex(line, "\t; ")
		rr, err := dns.NewRR(line[:at])
		if err != nil {
			return err
		}
		key, ttl, rdata := rrset.FromRR(rr)
		records = append(records, record{rrset.New(key, ttl, rdata), strings.TrimSpace(line[at+3:])})
	}
	if records, err = change(records); err != nil {
		return err
	}
	var lines bytes.Buffer
	for _, r := range records {
		fmt.Fprintf(&lines, "%s\t%d\tIN\t%s\t%s\t; %s\n", r.Name, r.TTL, dns.Type(r.Type), r.Rdata[0], r.owner)
	}
	return os.WriteFile(f.path(zone), lines.Bytes(), 0o600)
}

// recordsOf returns the records of an RRset as the owner's.
func (f zoneFiles) recordsOf(set rrset.RRset) (records []record) {
	for _, rdata := range set.Rdata {
		records = append(records, record{rrset.New(set.Key, set.TTL, rdata), f.owner})
	}
	return records
}

func (f zoneFiles) observe(records []record) host.Observation {
	sets, ours := plan.Map{}, map[rrset.Key]bool{}
	for _, r := range records {
		sets[r.Key] = rrset.New(r.Key, r.TTL, append(slices.Clone(sets[r.Key].Rdata), r.Rdata...)...)
		ours[r.Key] = ours[r.Key] || r.owner == f.owner
	}
	return host.Observation{Content: sets, Ours: func(k rrset.Key) bool { return ours[k] }}
}

func (f zoneFiles) Takes(p *v1beta1.DNSProvider) bool { return p.Annotations["kind"] == "file" }

func (f zoneFiles) Read(context.Context, *v1beta1.DNSProvider, host.ProviderAccess) (func() host.Backend, string, error) {
	return func() host.Backend { return f }, "", nil
}

func (f zoneFiles) Check(ctx context.Context, zone string) error {
	_, err := f.Observe(ctx, zone)
	return err
}

func (f zoneFiles) Observe(_ context.Context, zone string) (seen host.Observation, err error) {
	err = f.edit(zone, func(all []record) ([]record, error) { seen = f.observe(all); return all, nil })
	return seen, err
}

func (f zoneFiles) Apply(_ context.Context, zone string, changes plan.Changes, seen host.Observation) (host.Result, error) {
	result := host.Result{Refused: map[rrset.Key]error{}}
	return result, f.edit(zone, func(all []record) ([]record, error) {
		now, changed := f.observe(all), map[rrset.Key]bool{}
		for key := range changes.Keys() {
			was, _ := seen.Content.Get(key)
			if is, _ := now.Content.Get(key); !was.Equal(is) {
				return nil, host.ErrConflict
			}
			changed[key] = true
		}
		for _, r := range all {
			if changed[r.Key] && r.owner != f.owner {
				result.Refused[r.Key] = fmt.Errorf("%s has records of %s", r.Key, r.owner)
			}
		}
		isChanged := func(key rrset.Key) bool { return changed[key] && result.Refused[key] == nil }
		all = slices.DeleteFunc(all, func(r record) bool { return isChanged(r.Key) })
		for _, set := range slices.Concat(changes.Create, changes.UpdateNew) {
			if isChanged(set.Key) {
				all = append(all, f.recordsOf(set)...)
			}
		}
		return all, nil
	})
}

func (f zoneFiles) Unsupported(string, plan.Content) map[rrset.Key]string { return nil }
func (f zoneFiles) Apex() string                                          { return "the file has no apex; remove the record" }
func (f zoneFiles) Close() error                                          { return nil }

func (f zoneFiles) Watch(ctx context.Context, zone string, changed func()) {
	for last := []byte("unread"); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if text, _ := os.ReadFile(f.path(zone)); !bytes.Equal(last, text) {
			last = text
			changed()
		}
	}
}
