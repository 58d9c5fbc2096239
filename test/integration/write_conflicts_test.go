package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Declarations that exclude each other, which admission did not see because a selector brought them together: the older
// is served, the condition of the younger names it, and the younger follows when the winner is gone.
func writeConflicts(f *fixture) {
	late := *f
	late.object = "losers-late"
	// Objects that are made within the same second are ordered by name.
	winners := []v1beta1.Record{
		late.aRecord("a-beside", "beside", "192.0.2.1"), late.cnameRecord("a-alias", "alias", "one.example.net."), late.nsRecord("a-cut", "cut", "ns.cut"),
		late.txtRecord("a-hidden", "x.late", "older than the delegation"),
	}
	losers := []v1beta1.Record{
		late.cnameRecord("b-beside", "beside", "other.example.net."), late.cnameRecord("b-alias", "alias", "two.example.net."), late.txtRecord("b-below", "www.cut", "below"),
		late.nsRecord("b-hidden", "late", "ns.example.net."),
	}
	glue := late.aRecord("c-glue", "ns.cut", "192.0.2.2")
	for _, r := range append(append([]v1beta1.Record{glue}, winners...), losers...) {
		f.create(r)
	}
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	change(f, zone, func(z *v1beta1.DNSZone) {
		z.Spec.RecordsFrom = append(z.Spec.RecordsFrom, v1beta1.RecordSource{Selector: metav1.LabelSelector{MatchLabels: late.labels()}})
	})
	f.waitReady(append(winners, glue)...)
	for i, r := range losers {
		waitCondition(f, r, recordConditions, "Accepted", metav1.ConditionFalse, "Conflict", winners[i].GetName())
		waitCondition(f, r, recordConditions, "Programmed", metav1.ConditionFalse, "Conflict")
		waitCondition(f, r, recordConditions, "Ready", metav1.ConditionFalse, "ReconcileFailed", winners[i].GetName())
	}
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "PartialReconciliation", "5 of 9 records")
	f.waitSameContent(kube.Settle, passesBoth(contains("beside.losers.example. 3600 A 192.0.2.1", "alias.losers.example. 3600 CNAME one.example.net.",
		"cut.losers.example. 3600 NS ns.cut.losers.example.", "ns.cut.losers.example. 3600 A 192.0.2.2", `x.late.losers.example. 3600 TXT "older than the delegation"`),
		containsNo("www.cut.losers.example.", "late.losers.example.")))

	for _, r := range winners {
		if err := f.client.Delete(f.Context(), r); err != nil {
			f.Fatal(err)
		}
	}
	f.waitReady(losers...)
	f.waitSameContent(kube.Settle, contains("beside.losers.example. 3600 CNAME other.example.net.", "alias.losers.example. 3600 CNAME two.example.net.",
		`www.cut.losers.example. 3600 TXT "below"`, "late.losers.example. 3600 NS ns.example.net."))
}

// The address that replaces an alias waits for it, and no answer of any server is empty when the alias goes.
func writeAliasReplaced(f *fixture) {
	alias, address := f.cnameRecord("replaced-alias", "www", "cdn.example.net."), f.aRecord("replaced-www", "www", "192.0.2.10")
	f.create(alias)
	f.waitReady(alias)
	f.waitYounger(address, alias)
	f.create(address)
	waitCondition(f, v1beta1.Record(address), recordConditions, "Accepted", metav1.ConditionFalse, "Conflict", alias.Name)
	f.waitServed("www.replaced.example", "CNAME", "cdn.example.net.")
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.Context())
	var all sync.WaitGroup
	for pod, server := range servers {
		all.Go(func() {
			for ctx.Err() == nil {
				if reply, err := kube.Query(server, "www.replaced.example.", dns.TypeA, kube.QueryTimeout); err == nil && len(reply.Answer) == 0 {
					f.Errorf("%s has nothing at the name", pod)
					return
				}
			}
		})
	}
	if err := f.client.Delete(f.Context(), alias); err != nil {
		f.Error(err)
	}
	f.waitReady(address)
	f.waitServed("www.replaced.example", "A", "192.0.2.10")
	stop()
	all.Wait()
}

// BIND answers NOERROR to data beside a CNAME and ignores it. The record's condition names the obstacle, all others are
// served, and the record follows when the obstacle is gone.
func writeForeignAlias(f *fixture) {
	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
		f.updateByHand(pod, addRecords("taken.blocked.example. 300 CNAME elsewhere.example.net.", `busy.blocked.example. 300 TXT "by hand"`))
	}
	a, alias, free := f.aRecord("blocked-taken", "taken", "192.0.2.1"), f.cnameRecord("blocked-busy", "busy", "one.example.net."), f.aRecord("blocked-free", "free", "192.0.2.2")
	f.create(a, alias, free)
	f.waitReady(free)
	waitCondition(f, v1beta1.Record(a), recordConditions, "Programmed", metav1.ConditionFalse, "Conflict", "CNAME", "taken.blocked.example.")
	waitCondition(f, v1beta1.Record(alias), recordConditions, "Programmed", metav1.ConditionFalse, "Conflict", "TXT", "busy.blocked.example.")
	waitCondition(f, v1beta1.Record(a), recordConditions, "Accepted", metav1.ConditionTrue, "Accepted")
	f.waitSameContent(kube.Settle, contains("taken.blocked.example. 300 CNAME elsewhere.example.net.", `busy.blocked.example. 300 TXT "by hand"`, "free.blocked.example. 3600 A 192.0.2.2"))

	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
		f.updateByHand(pod, removeRRsets("taken.blocked.example. 0 CNAME x.", `busy.blocked.example. 0 TXT ""`))
	}
	f.waitReady(a, alias)
	f.waitSameContent(kube.Settle, contains("taken.blocked.example. 3600 A 192.0.2.1", "busy.blocked.example. 3600 CNAME one.example.net."))
}

// BIND refuses a 101st type at a name. The record that asks for it gets the server's answer in its condition; what was in the same
// batch is served.
func writeRefusedAlone(f *fixture) {
	var full []string
	for i := range 100 {
		full = append(full, fmt.Sprintf("full.alone.example. 300 TYPE%d \\# 1 00", 65300+i))
	}
	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
		f.updateByHand(pod, addRecords(full...))
	}
	refused := f.txtRecord("alone-full", "full", "one too many")
	others := []v1beta1.Record{f.aRecord("alone-1", "one", "192.0.2.1"), f.aRecord("alone-2", "two", "192.0.2.2"), f.txtRecord("alone-3", "three", "x"), f.cnameRecord("alone-4", "four", "one")}
	f.create(others[0], others[1], refused, others[2], others[3])
	f.waitReady(others...)
	waitCondition(f, v1beta1.Record(refused), recordConditions, "Programmed", metav1.ConditionFalse, "ReconcileFailed", "dns-primary-", "SERVFAIL")
	waitCondition(f, v1beta1.Record(refused), recordConditions, "Accepted", metav1.ConditionTrue, "Accepted")
	f.waitSameContent(kube.Settle, contains("one.alone.example. 3600 A 192.0.2.1", "two.alone.example. 3600 A 192.0.2.2", `three.alone.example. 3600 TXT "x"`,
		"four.alone.example. 3600 CNAME one.alone.example."))
	later := f.aRecord("alone-5", "five", "192.0.2.5")
	f.create(later)
	f.waitReady(later)

	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0"} {
		f.updateByHand(pod, func(m *dns.Msg) { m.RemoveName(parseRecords([]string{"full.alone.example. 0 A 192.0.2.1"})) })
		for _, command := range []string{"freeze", "thaw"} { // named 9.20 counts types that were removed until it loads the zone.
			f.kubectl("exec", pod, "-c", "bindcar", "--", "/lockstep", "rndc", command, "alone.example")
		}
	}
	change(f, refused, func(r *v1beta1.TXTRecord) { r.Spec.Text = []string{"fits now"} })
	f.waitReady(refused)
}

// Somebody else updates both primaries all the time while records come and go: nothing of either is lost, and the
// secondary, which takes changes from one and the other, ends on what both have.
func writeForeignMeanwhile(f *fixture) {
	seen := f.aRecord(f.object+"-seen", "seen", "192.0.2.1")
	f.create(seen)
	f.waitReady(seen)
	pods := []string{"dns-primary-0-0", "dns-primary-1-0"}
	const count = 40
	key := f.key(named.KeyUpdate)
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	var lines []string
	var group sync.WaitGroup
	for _, pod := range pods {
		var foreign []string
		for n := range count {
			foreign = append(foreign, fmt.Sprintf("%s-%d.%s. 300 A 192.0.2.9", pod, n, f.zone))
		}
		lines = append(lines, foreign...)
		group.Go(func() {
			for _, l := range foreign {
				if err := retryWhile(f.Context(), kube.Settle, isSilence, func(ctx context.Context) error {
					return sendUpdate(ctx, servers[pod], f.zone, key, addRecords(l))
				}); err != nil {
					f.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for n := range count {
		f.create(f.aRecord(fmt.Sprint(f.object, "-", n), fmt.Sprint("own-", n), "192.0.2.1"))
		lines = append(lines, fmt.Sprintf("own-%d.%s. 3600 A 192.0.2.1", n, f.zone))
	}
	group.Wait()
	slices.Sort(lines)
	f.waitSameContent(kube.Settle, func(got []string) error {
		if missing := slices.DeleteFunc(difference(lines, got), func(d string) bool { return d[0] == '+' }); len(missing) > 0 {
			return fmt.Errorf("lost: %d of %d RRsets:\n%s", len(missing), len(lines), strings.Join(missing, "\n"))
		}
		return nil
	})
}
