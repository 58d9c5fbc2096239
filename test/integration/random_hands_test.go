package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// stepForeign puts data into a zone that no object declares.
func (w *randomWorld) stepForeign() bool {
	z := pick(w, w.zones...)
	name, record := pick(w, "legacy-0", "legacy-1", "legacy-2")+"."+z.Name, "A 192.0.2.99"
	if w.rng.IntN(2) == 0 {
		name, record = pick(w, "h0", "h1", "legacy-3")+"."+z.Name, `TXT "put here by hand"`
	}
	rrtype, rdata, _ := strings.Cut(record, " ")
	alone := !slices.ContainsFunc(w.objects, func(t *model.Object) bool {
		return (t.Kind == "CNAMERecord" || t.Kind == model.EndpointKind) && slices.Contains(w.namesOf(t), name)
	})
	if z.paused || !alone || (w.touched[name] && rrtype == "A") || strings.HasPrefix(name, "legacy") && w.touched[name] {
		return false
	}
	pod := pick(w, "dns-primary-0-0", "dns-primary-1-0")
	w.edit(z, pod, addRecords(name+" 300 "+record))
	z.Foreign[name+" "+rrtype] = model.RRset{TTL: 300, Rdata: []string{rdata}}
	w.logStep("by hand on %s: add %s %s", pod, name, record)
	if rrtype == "A" {
		w.foreignEverywhere() // Only then it is certain what a CNAME finds there.
	}
	return true
}

// stepForeignGone takes foreign data away again.
func (w *randomWorld) stepForeignGone() bool {
	z := pick(w, w.zones...)
	if z.paused || len(z.Foreign) == 0 {
		return false
	}
	w.foreignEverywhere()
	key := pick(w, slices.Sorted(maps.Keys(z.Foreign))...)
	pod := pick(w, "dns-primary-0-0", "dns-primary-1-0")
	name, rrtype, _ := strings.Cut(key, " ")
	w.edit(z, pod, removeRRsets(name+" 0 "+rrtype+" "+z.Foreign[key].Rdata[0]))
	delete(z.Foreign, key)
	w.logStep("by hand on %s: remove %s", pod, key)
	return true
}

// stepDrift changes by hand what an object declares. Until the next checkpoint nothing else happens to that name.
func (w *randomWorld) stepDrift() bool {
	t := w.any(func(t *model.Object) bool {
		return t.Kind != model.EndpointKind && (strings.HasPrefix(t.Owner, "h") || strings.HasPrefix(t.Owner, "t"))
	})
	if t == nil {
		return false
	}
	z := w.selecting(t.Label)
	if z == nil || z.paused || w.touched[t.Declare(&z.Zone).Name] {
		return false
	}
	d := t.Declare(&z.Zone)
	z.frozen, w.frozen[d.Name] = true, true
	pod := pick(w, "dns-primary-0-0", "dns-primary-1-0")
	record := fmt.Sprintf("%s 17 %s %s", d.Name, d.Type, d.Rdata[0])
	switch w.rng.IntN(3) {
	case 0:
		w.edit(z, pod, removeRRsets(record))
	case 1: // another TTL
		w.edit(z, pod, addRecords(record))
	default:
		other := map[string]string{"A": "203.0.113.9", "AAAA": "2001:db8::bad", "TXT": `"bad"`, "MX": "1 bad.", "CAA": `0 issue "bad"`}[d.Type]
		record = fmt.Sprintf("%s 17 %s %s", d.Name, d.Type, other)
		w.edit(z, pod, addRecords(record))
	}
	w.logStep("by hand on %s: changed %s", pod, record)
	return true
}

// edit sends an update by hand, again when the server does not answer.
func (w *randomWorld) edit(z *zoneState, pod string, change func(*dns.Msg)) {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		servers, err := w.servers(ctx)
		if err != nil {
			return err
		}
		return sendUpdate(ctx, servers[pod], z.Name, w.update, change)
	})
}

// foreignEverywhere waits until no foreign data hangs on a single server any more: what only one server has cannot outlive it.
func (w *randomWorld) foreignEverywhere() {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		for _, z := range w.zones {
			all, err := w.copies(ctx, z.dnsName(), w.transfer)
			if err != nil {
				return err
			}
			if len(all) != 4 {
				return fmt.Errorf("%d servers serve %s", len(all), z.Name)
			}
			for pod, c := range all {
				for _, l := range model.Lines(z.Foreign) {
					if _, ok := slices.BinarySearch(c.lines, l); !ok {
						return fmt.Errorf("%s: foreign data is missing: %s", pod, l)
					}
				}
			}
		}
		return w.podsReady(ctx)
	})
}
