package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// Two owners publish under one name of one server, as two Kubernetes clusters do. Both are in sync, neither corrects the other, and whoever
// leaves takes its own values only.
func TestOwnersOfOneName(t *testing.T) {
	kube.Isolated(t)
	berlin, paris := newFixture(t, "owners.example", 1, 0), newFixture(t, "owners.example", 1, 0)
	zones := []namedtest.Zone{{Name: "owners.example.", Records: "app 900 A 192.0.2.99\n"}}
	outside := namedtest.Start(t, namedtest.Options{Addr: freePort(t, berlin.hostAddress()), Zones: zones})
	const name = "app.owners.example."
	providers := map[*fixture]*v1beta1.DNSProvider{}
	for f, address := range map[*fixture]string{berlin: "192.0.2.1", paris: "192.0.2.2"} {
		provider := f.outsidePrimary("corp", outside.Addr)
		provider.Spec.RFC2136.Writers, provider.Spec.RFC2136.Ownership = v1beta1.WritersShared, v1beta1.OwnershipValues
		if f == berlin {
			provider.Spec.RFC2136.OwnerID = "berlin"
		}
		providers[f] = provider
		f.create(f.keySecret("corp-update", outside.Update), f.keySecret("corp-transfer", outside.Transfer), provider, f.aRecord("app", "app", address))
		change(f, f.dnsZone("main", f.zone), func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}} })
	}
	berlin.waitOutside(name, []string{"192.0.2.1", "192.0.2.2", "192.0.2.99"}, outside.Addr)
	for f, other := range map[*fixture]string{berlin: "/" + paris.namespace + "/corp", paris: "berlin/" + berlin.namespace + "/corp"} {
		s := f.waitInSync("arecord.app", 2)
		if !rowsSay(s, other) {
			f.Errorf("no row names %s: %+v", other, s.Servers)
		}
		record := f.aRecord("app", "app")
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(record.Status.Conditions, status.Programmed) {
				return fmt.Errorf("conditions %+v", record.Status.Conditions)
			}
			return nil
		})
		zone := f.dnsZone("main", f.zone)
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(zone), zone); err != nil || meta.IsStatusConditionTrue(zone.Status.Conditions, status.Contested) {
			f.Errorf("conditions %+v, %v", zone.Status.Conditions, err)
		}
	}
	t.Run("Immutable", func(t *testing.T) { testOwnerIsImmutable(t, berlin, providers[berlin]) })
	// One changes, and the other leaves with its namespace.
	change(berlin, berlin.aRecord("app", "app"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{"192.0.2.3"} })
	berlin.waitOutside(name, []string{"192.0.2.2", "192.0.2.3", "192.0.2.99"}, outside.Addr)
	paris.deleteNamespace(providers[paris])
	berlin.waitOutside(name, []string{"192.0.2.3", "192.0.2.99"}, outside.Addr)
	berlin.waitInSync("arecord.app", 2)
	// A deleted zone takes its own values, and no others.
	berlin.deleteAnyway(berlin.dnsZone("main", berlin.zone))
	berlin.waitOutside(name, []string{"192.0.2.99"}, outside.Addr)
}

// rowsSay reports whether a row of a SyncStatus has some text in its message.
func rowsSay(s *syncv1.SyncStatus, text string) bool {
	for _, row := range s.Servers {
		if strings.Contains(row.Message, text) {
			return true
		}
	}
	return false
}

// testOwnerIsImmutable: what is in the zones under the name of an owner is not given up by a change of the provider.
func testOwnerIsImmutable(t *testing.T, f *fixture, provider *v1beta1.DNSProvider) {
	for name, edit := range map[string]func(*v1beta1.RFC2136Provider){
		"ownership": func(s *v1beta1.RFC2136Provider) { s.Ownership, s.OwnerID = v1beta1.OwnershipNames, "" },
		"ownerID":   func(s *v1beta1.RFC2136Provider) { s.OwnerID = "paris" },
		"no owner":  func(s *v1beta1.RFC2136Provider) { s.OwnerID = "" },
		"readBy":    func(s *v1beta1.RFC2136Provider) { s.ReadBy = v1beta1.ReadByQuery },
		"writers":   func(s *v1beta1.RFC2136Provider) { s.Writers = v1beta1.WritersExclusive },
	} {
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(provider), provider); err != nil {
			t.Fatal(err)
		}
		edit(provider.Spec.RFC2136)
		if err := f.client.Update(t.Context(), provider); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
