package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// What others change in the zones by hand. All tests share two primaries and a secondary.
func TestDrift(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "drift.example", 2, 1)
	for _, test := range []struct {
		zone string
		run  func(*fixture)
	}{
		{"corrected.example", driftIsCorrected},
		{"foreign.example", driftForeignListed},
		{"pruned.example", driftPruned},
		{"paused.example", driftPaused},
		{"contested.example", driftContested},
	} {
		t.Run(test.zone, func(t *testing.T) { test.run(f.newZone(t, test.zone)) })
	}
}

// What objects declare comes back within seconds, on whichever primary it was changed, and the zone says nothing else.
func driftIsCorrected(f *fixture) {
	f.create(f.aRecord("corrected-www", "www", "192.0.2.1", "192.0.2.2"), f.txtRecord("corrected-txt", "txt", "ours"), f.cnameRecord("corrected-alias", "alias", "www"))
	declared := []string{"www.corrected.example. 3600 A 192.0.2.1 | 192.0.2.2", `txt.corrected.example. 3600 TXT "ours"`,
		"alias.corrected.example. 3600 CNAME www.corrected.example.", "corrected.example. 3600 NS ns1.corrected.example."}
	want := f.waitSameContent(kube.Settle, contains(declared...)).lines
	for what, c := range map[string][]string{
		"a value added":   {"+", "www.corrected.example. 3600 A 203.0.113.9"},
		"another TTL":     {"+", "www.corrected.example. 17 A 192.0.2.1"},
		"an RRset gone":   {"-", "www.corrected.example. 0 A 192.0.2.1"},
		"a text added":    {"+", `txt.corrected.example. 3600 TXT "theirs"`},
		"an alias turned": {"+", "alias.corrected.example. 3600 CNAME elsewhere.example."},
		"a name server":   {"+", "corrected.example. 3600 NS ns.elsewhere.example."},
	} {
		for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
			f.runSub(what+" on "+pod, func(f *fixture) {
				before := f.waitSameContent(kube.Settle, contains(declared...)).serial
				edit := addRecords(c[1])
				if c[0] == "-" {
					edit = removeRRsets(c[1])
				}
				f.updateByHand(pod, edit)
				began := time.Now()
				f.waitSameContent(kube.Settle, func(lines []string) error {
					if d := difference(want, lines); len(d) > 0 {
						return fmt.Errorf("not corrected: %v", d)
					}
					return nil
				})
				kube.Eventually(f, kube.Settle, func(context.Context) error {
					if f.waitSameContent(kube.Settle, contains(declared...)).serial == before {
						return fmt.Errorf("the serial is still %d: nothing happened", before)
					}
					return nil
				})
				f.Logf("corrected after %s", time.Since(began).Round(time.Millisecond))
			})
		}
	}
}

// RRsets that nobody declares stay, reach every server from whichever primary they were put on, and are listed.
func driftForeignListed(f *fixture) {
	f.create(f.aRecord("foreign-www", "www", "192.0.2.1"))
	f.waitSameContent(kube.Settle, contains("www.foreign.example. 3600 A 192.0.2.1"))
	f.updateByHand("dns-primary-0-0", addRecords("one.foreign.example. 300 A 192.0.2.9", `www.foreign.example. 300 TXT "beside ours"`))
	f.updateByHand("dns-primary-1-0", addRecords("two.foreign.example. 300 MX 10 mail.example.net."))
	lines := []string{"one.foreign.example. 300 A 192.0.2.9", `www.foreign.example. 300 TXT "beside ours"`, "two.foreign.example. 300 MX 10 mail.example.net."}
	f.waitSameContent(kube.Settle, contains(lines...))
	f.waitForeign("one.foreign.example. A", "two.foreign.example. MX", "www.foreign.example. TXT")

	f.create(f.aRecord("foreign-one", "one", "192.0.2.10"))
	f.waitSameContent(kube.Settle, contains("one.foreign.example. 3600 A 192.0.2.10", lines[1], lines[2]))
	f.waitForeign("two.foreign.example. MX", "www.foreign.example. TXT")
	f.updateByHand("dns-primary-1-0", removeRRsets(`www.foreign.example. 0 TXT ""`))
	f.waitSameContent(kube.Settle, passesBoth(contains(lines[2]), func(now []string) error {
		if slices.Contains(now, lines[1]) {
			return fmt.Errorf("%s is still there", lines[1])
		}
		return nil
	}))
	f.waitForeign("two.foreign.example. MX")
}

// waitForeign waits until the zone lists exactly these RRsets as foreign.
func (f *fixture) waitForeign(want ...string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { return f.foreignListed(ctx, want...) })
}

// foreignListed returns an error when the zone does not list exactly these RRsets as foreign.
func (f *fixture) foreignListed(ctx context.Context, want ...string) error {
	zone := &v1beta1.DNSZone{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: f.object}, zone); err != nil {
		return err
	}
	got := slices.Sorted(slices.Values(zone.Status.ForeignRRsets))
	if !slices.Equal(got, want) || int(zone.Status.ForeignRRsetsCount) != len(want) {
		return fmt.Errorf("%d foreign RRsets: %q, want %q", zone.Status.ForeignRRsetsCount, got, want)
	}
	return nil
}

// annotateZone sets an annotation of the fixture's zone; an empty value removes it.
func (f *fixture) annotateZone(key, value string) {
	f.Helper()
	change(f, &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}, func(z *v1beta1.DNSZone) {
		if z.Annotations == nil {
			z.Annotations = map[string]string{}
		}
		if z.Annotations[key] = value; value == "" {
			delete(z.Annotations, key)
		}
	})
}

// With the annotation what nobody declares goes, and without it nothing does.
func driftPruned(f *fixture) {
	f.create(f.aRecord("pruned-www", "www", "192.0.2.1"))
	f.waitSameContent(kube.Settle, contains("www.pruned.example. 3600 A 192.0.2.1"))
	f.updateByHand("dns-primary-0-0", addRecords("one.pruned.example. 300 A 192.0.2.9", `www.pruned.example. 300 TXT "beside ours"`))
	f.waitSameContent(kube.Settle, contains("one.pruned.example. 300 A 192.0.2.9"))
	f.annotateZone(v1beta1.PruneAnnotation, "true")
	ours := func(lines []string) error {
		if len(lines) != 3 {
			return fmt.Errorf("the zone holds\n%s", strings.Join(lines, "\n"))
		}
		return nil
	}
	f.waitSameContent(kube.Settle, passesBoth(contains("www.pruned.example. 3600 A 192.0.2.1", "pruned.example. 3600 NS ns1.pruned.example."), ours))
	f.waitForeign()
	f.updateByHand("dns-primary-1-0", addRecords("two.pruned.example. 300 A 192.0.2.9"))
	f.waitSameContent(kube.Settle, ours)
	f.annotateZone(v1beta1.PruneAnnotation, "")
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		// The controller may delete it once more before it has seen that the annotation is gone.
		f.updateByHand("dns-primary-1-0", addRecords("three.pruned.example. 300 A 192.0.2.9"))
		return f.foreignListed(ctx, "three.pruned.example. A")
	})
	f.waitSameContent(kube.Settle, contains("three.pruned.example. 300 A 192.0.2.9"))
	f.waitForeign("three.pruned.example. A")
}

// pauseZone pauses the zone and waits until the controller says that it is.
func (f *fixture) pauseZone() {
	f.Helper()
	f.annotateZone(v1beta1.PausedAnnotation, "true")
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		for _, c := range zone.Status.Conditions {
			if strings.Contains(strings.ToLower(c.Message), "paused") || strings.Contains(c.Reason, "Paused") {
				return nil
			}
		}
		return fmt.Errorf("the zone does not say that it is paused: %+v", zone.Status.Conditions)
	})
}

// A paused zone is watched and not touched; afterwards it catches up.
func driftPaused(f *fixture) {
	record, leaving := f.aRecord("paused-www", "www", "192.0.2.1"), f.aRecord("paused-leaving", "leaving", "192.0.2.2")
	f.create(record, leaving)
	f.waitReady(record, leaving)
	before := f.waitSameContent(kube.Settle, contains("www.paused.example. 3600 A 192.0.2.1"))
	f.pauseZone()

	added := f.aRecord("paused-added", "added", "192.0.2.3")
	f.create(added)
	change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.9"} })
	if err := f.client.Delete(f.Context(), leaving); err != nil {
		f.Fatal(err)
	}
	waitCondition(f, v1beta1.Record(added), recordConditions, "Programmed", metav1.ConditionFalse, "Paused")
	f.updateByHand("dns-primary-0-0", addRecords("www.paused.example. 3600 A 203.0.113.9"))
	// What is reported of a later record is reported by a pass that has met the change.
	later := f.aRecord("paused-later", "later", "192.0.2.4")
	f.create(later)
	waitCondition(f, v1beta1.Record(later), recordConditions, "Programmed", metav1.ConditionFalse, "Paused")
	key := f.key(named.KeyTransfer)
	var all map[string]copyOf
	kube.Eventually(f, kube.Settle, func(ctx context.Context) (err error) {
		all, err = f.copies(ctx, f.zone, key)
		return err
	})
	if d := difference(before.lines, all["dns-primary-1-0"].lines); len(d) > 0 {
		f.Errorf("a paused zone was changed: %v", d)
	}
	if !slices.Contains(all["dns-primary-0-0"].lines, "www.paused.example. 3600 A 192.0.2.1 | 203.0.113.9") {
		f.Errorf("a change by hand was undone in a paused zone: %v", all["dns-primary-0-0"].lines)
	}

	f.annotateZone(v1beta1.PausedAnnotation, "")
	f.waitSameContent(kube.Settle, passesBoth(contains("www.paused.example. 3600 A 192.0.2.9", "added.paused.example. 3600 A 192.0.2.3", "later.paused.example. 3600 A 192.0.2.4"), containsNo("leaving.paused.example.")))
	f.waitReady(record, added, later)
	f.waitGone(leaving)
}

// Somebody who overwrites a name as often as it is corrected is not fought for ever: the stored conditions, the zone and an Event say so, with
// what was seen. Afterwards the name is as declared, and its record programmed.
func driftContested(f *fixture) {
	record, other := f.aRecord("contested-www", "www", "192.0.2.1"), f.aRecord("contested-other", "other", "192.0.2.2")
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	f.create(record, other)
	f.waitReady(record)
	key := f.key(named.KeyTransfer)
	isContested := func(ctx context.Context) bool {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			f.Fatal(err)
		}
		return meta.IsStatusConditionTrue(zone.Status.Conditions, "Contested")
	}
	for fights := 0; !isContested(f.Context()); fights++ {
		if fights > 30 {
			f.Fatalf("after %d corrections the zone says nothing: %+v", fights, zone.Status.Conditions)
		}
		f.updateByHand("dns-primary-0-0", addRecords("www.contested.example. 3600 A 203.0.113.66"))
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			all, err := f.copies(ctx, f.zone, key)
			if err == nil && !isContested(ctx) {
				err = contains("www.contested.example. 3600 A 192.0.2.1")(all["dns-primary-0-0"].lines)
			}
			return err
		})
	}
	waitCondition(f, zone, zoneConditions, "Contested", metav1.ConditionTrue, "Overwritten", "www.contested.example. A", "203.0.113.66")
	f.waitEvent(zone, "Warning Contested", "www.contested.example. A")
	change(f, other, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.3"} })
	f.waitServed("other.contested.example", "A", "192.0.2.3")
	f.waitReady(other)
	f.waitSameContent(kube.Settle, contains("www.contested.example. 3600 A 192.0.2.1"))
	f.waitReady(record)
}
