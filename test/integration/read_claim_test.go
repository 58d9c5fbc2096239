package integration

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// waitShadowed waits until a SyncStatus, read by name and in a list, is OutOfSync because of another zone on every server.
func (f *fixture) waitShadowed(name, by string) {
	f.Helper()
	check := func(s *syncv1.SyncStatus) error {
		for _, r := range s.Servers {
			if s.Status.Phase != syncv1.PhaseOutOfSync || r.State != syncv1.StateShadowed || r.ShadowedBy != by {
				return fmt.Errorf("%s is %s: %+v", name, s.Status.Phase, r)
			}
		}
		return nil
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s, err := f.status(ctx, name)
		if err != nil {
			return err
		}
		return check(s)
	})
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		list := &syncv1.SyncStatusList{}
		if err := f.client.List(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			if s := &list.Items[i]; s.Namespace == f.namespace && s.Name == name {
				return check(s)
			}
		}
		return fmt.Errorf("%s is not listed", name)
	})
}

// A record is in sync only if resolvers get it: a zone below on the same servers hides it. For a zone below there is also
// whether its parent delegates to it.
func TestReadShadowed(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "shadow.example", 1, 1)
	f.create(f.aRecord("www", "www", "192.0.2.1"), f.aRecord("other", "other", "192.0.2.1"))
	f.waitInSync("arecord.www", 2)
	f.newZone(t, "www.shadow.example")
	f.waitShadowed("arecord.www", "www.shadow.example")
	f.waitInSync("arecord.other", 2)
	f.kubectl("wait", "--for=condition=Delegated=False", "syncstatus/dnszone.www", "--timeout=120s")

	sub := f.newZone(t, "sub.shadow.example")
	glue := sub.waitInSync("dnszone.sub", 2).NameServers[0].Addresses
	ns := &v1beta1.NSRecord{ObjectMeta: f.meta("sub", f.labels())}
	ns.Spec.Name, ns.Spec.Nameserver = "sub", "ns1.sub.shadow.example."
	f.create(ns)
	reason := func(want string) {
		t.Helper()
		kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
			s, err := f.status(ctx, "dnszone.sub")
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionDelegated)
			if c == nil || c.Reason != want || (c.Status == metav1.ConditionTrue) != (want == "Delegated") {
				return fmt.Errorf("%+v, want %s", c, want)
			}
			return nil
		})
	}
	reason("GlueDiffers")
	f.create(f.aRecord("glue", "ns1.sub", glue...))
	reason("Delegated")
	for _, name := range []string{"arecord.glue", "nsrecord.sub", "dnszone.sub"} {
		f.waitInSync(name, 2)
	}

	f.deleteAnyway(&v1beta1.DNSZone{ObjectMeta: f.meta("www", nil)})
	f.waitInSync("arecord.www", 2)
}
