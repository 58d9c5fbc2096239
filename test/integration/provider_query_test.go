package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// A zone on a server that lets nobody transfer it: what is declared is there, and SyncStatus says so by the server's answers, for one
// object and in lists; a change by hand shows and is undone.
func TestProviderQuery(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "fleet.example", 1, 0)
	zones := []namedtest.Zone{{Name: "query.example.", Records: "legacy 300 A 192.0.2.77\n", Extra: "allow-transfer { none; };"}}
	outside := namedtest.Start(t, namedtest.Options{Addr: freePort(t, f.hostAddress()), Zones: zones})
	provider := f.outsidePrimary("corp", outside.Addr)
	provider.Spec.RFC2136.ReadBy = v1beta1.ReadByQuery
	f.create(f.keySecret("corp-update", outside.Update), f.keySecret("corp-transfer", outside.Transfer), provider)
	f.zone, f.object = "query.example", "query"
	zone := f.dnsZone("query", f.zone)
	zone.Spec.ClusterRef, zone.Spec.ProviderRefs = "", []v1beta1.ProviderReference{{Name: "corp"}}
	f.create(zone, f.aRecord("www", "www", "192.0.2.10"), f.aRecord("mail", "mail", "192.0.2.11"))
	f.waitOutside("www.query.example.", []string{"192.0.2.10"}, outside.Addr)
	f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)

	f.runSub("rows", func(f *fixture) {
		for object, message := range map[string]string{"arecord.www": "", "dnszone.query": "only what is declared was compared"} {
			s := f.waitInSync(object, 1)
			if r := s.Servers[0]; r.Provider != "corp" || r.ReadBy != "Query" || r.Serial == nil || r.ObservedAt == nil || r.Message != message {
				f.Errorf("%s: row %+v", object, r)
			}
			if c := s.Servers[0].Records; c != nil && (c.Unknown != 0 || c.OutOfSync != 0 || c.Undeclared != 0) {
				f.Errorf("%s: counts %+v", object, c)
			}
		}
		list := &syncv1.SyncStatusList{}
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.List(ctx, list); err != nil {
				return err
			}
			for _, s := range list.Items {
				if s.Namespace == f.namespace && s.Zone == f.zone && !s.Status.InSync {
					return fmt.Errorf("%s is %s in the list: %+v", s.Name, s.Status.Phase, s.Servers)
				}
			}
			return nil
		})
		plugin := &pluginTest{f, pluginFolder(f.T)}
		if tree, problem, _ := plugin.runPlugin("tree", "dnszone/query"); !strings.Contains(tree, "read by query") {
			f.Errorf("the tree does not say how the server is read:\n%s%s", tree, problem)
		}
	})
	f.runSub("changed by hand", func(f *fixture) {
		f.updateOutside(outside, func(m *dns.Msg) {
			m.RemoveRRset([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "www.query.example.", Rrtype: dns.TypeA, Class: dns.ClassINET}}})
		})
		if v, err := f.status(f.Context(), "arecord.www"); err != nil || v.Status.InSync && f.isOutside(outside.Addr, "www.query.example.", "192.0.2.10") != nil {
			f.Errorf("in sync, although %s has lost it: %v", outside.Addr, err)
		}
		f.waitOutside("www.query.example.", []string{"192.0.2.10"}, outside.Addr)
		f.waitInSync("arecord.www", 1)
	})
	f.runSub("declared otherwise", func(f *fixture) {
		change(f, f.aRecord("www", "www"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{"192.0.2.12"} })
		if v, err := f.status(f.Context(), "arecord.www"); err != nil || v.Status.InSync && f.isOutside(outside.Addr, "www.query.example.", "192.0.2.12") != nil {
			f.Errorf("in sync before it is there: %v", err)
		}
		f.waitInSync("arecord.www", 1)
		f.waitOutside("www.query.example.", []string{"192.0.2.12"}, outside.Addr)
		f.waitOutside("legacy.query.example.", []string{"192.0.2.77"}, outside.Addr)
	})
	f.runSub("key of a stranger", func(f *fixture) {
		stranger := namedtest.NewKey(outside.Transfer.Name)
		secret := f.keySecret("corp-transfer", stranger)
		f.deleteAnyway(secret)
		f.create(f.keySecret("corp-transfer", stranger))
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			v, err := f.status(ctx, "arecord.www")
			if err != nil {
				return err
			}
			if v.Status.InSync || v.Servers[0].State == syncv1.StateInSync {
				return fmt.Errorf("%s: %+v", v.Status.Phase, v.Servers[0])
			}
			return nil
		})
	})
}
