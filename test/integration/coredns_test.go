package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// corednsTest is a zone on a primary of a cluster and on two replicas of CoreDNS, of which the second has a cache.
type corednsTest struct {
	*fixture
	world    *corednsWorld
	provider *v1beta1.DNSProvider
}

// A zone is on a cluster and in etcd for CoreDNS: each replica answers as declared, in sync means on all of them. What CoreDNS cannot
// hold is refused by itself; what fails there is reported with what to do, and hinders nobody.
func TestProviderCoreDNS(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "coredns.example", 1, 0)
	w := startCoreDNS(t, f.hostAddress(), f.zone, "", "cache 30")
	secret := &corev1.Secret{ObjectMeta: f.meta("etcd-user", nil), StringData: map[string]string{"username": etcdUser, "password": etcdPassword}}
	authority := &corev1.Secret{ObjectMeta: f.meta("etcd-ca", nil), Data: map[string][]byte{"ca.crt": w.authority}}
	provider := &v1beta1.DNSProvider{ObjectMeta: f.meta("etcd", nil)}
	provider.Spec.CoreDNS = &v1beta1.CoreDNSProvider{
		Etcd: v1beta1.EtcdStore{
			Endpoints: []string{w.endpoint}, TLSSecretRef: &v1beta1.ProviderSecret{Name: "etcd-ca"}, CredentialsSecretRef: &v1beta1.ProviderSecret{Name: "etcd-user"},
		},
		Servers: v1beta1.CoreDNSServers{Addresses: []v1beta1.ProviderServer{serverAt(w.replicas[0].addr), serverAt(w.replicas[1].addr)}},
	}
	f.create(secret, authority, provider, f.aRecord("www", "www", "192.0.2.10"))
	change(f, f.dnsZone("main", f.zone), func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "etcd"}} })
	c := corednsTest{f, w, provider}
	f.waitOutside("www.coredns.example.", []string{"192.0.2.10"}, w.addrs()...)
	f.waitServed("www.coredns.example.", "A", "192.0.2.10")
	c.runSub("status", corednsTest.testStatus)
	c.runSub("rows", corednsTest.testRows)
	c.runSub("change and delete", corednsTest.testChanges)
	c.runSub("cached answer", corednsTest.testCachedAnswer)
	c.runSub("drift", corednsTest.testDrift)
	c.runSub("unsupported", corednsTest.testUnsupported)
	c.runSub("replica stopped", corednsTest.testReplicaStopped)
	c.runSub("etcd stopped", corednsTest.testEtcdStopped)
	c.runSub("replicas of a Service", corednsTest.testService)
	c.runSub("zone deleted", corednsTest.testZoneDeleted)
	c.runSub("namespace deleted", corednsTest.testNamespaceDeleted)
}

func (c corednsTest) runSub(name string, run func(corednsTest)) {
	c.Helper()
	c.fixture.runSub(name, func(f *fixture) {
		c.fixture = f
		run(c)
	})
}

func (c corednsTest) testStatus() {
	c.waitProvider(c.provider, status.Ready, metav1.ConditionTrue, status.AllReady)
	s := c.provider.Status
	if found := s.Capabilities; found == nil || found.Serial || found.Transfer || found.Wildcards || !ptr.Deref(found.Atomic, false) || !slices.Contains(found.RecordTypes, "SRV") || len(s.Servers) != 2 || s.Type != "coreDNS" {
		c.Errorf("status %+v", s)
	}
}

// rowOf returns the row of a replica in the SyncStatus of an object.
func (c corednsTest) rowOf(ctx context.Context, object string, replica netip.AddrPort) (v *syncv1.SyncStatus, row syncv1.ServerStatus, err error) {
	if v, err = c.status(ctx, object); err != nil {
		return v, row, err
	}
	n := slices.IndexFunc(v.Servers, func(r syncv1.ServerStatus) bool { return r.Provider == "etcd" && r.Address == replica.String() })
	if n < 0 {
		return v, row, fmt.Errorf("%s has no row of %s: %+v", object, replica, v.Servers)
	}
	return v, v.Servers[n], nil
}

// waitRow waits until the row of a replica is as wanted.
func (c corednsTest) waitRow(object string, replica netip.AddrPort, state syncv1.ServerState, says string) {
	c.Helper()
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		v, row, err := c.rowOf(ctx, object, replica)
		if err == nil && (row.State != state || !strings.Contains(row.Message, says) || v.Status.InSync && state != syncv1.StateInSync) {
			err = fmt.Errorf("%s is %s, row %+v", object, v.Status.Phase, row)
		}
		return err
	})
}

func (c corednsTest) waitInSync(objects ...string) {
	c.Helper()
	for _, object := range objects {
		kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
			v, err := c.status(ctx, object)
			if err == nil && !v.Status.InSync {
				err = fmt.Errorf("%s: %s, rows %+v", object, v.Status.Phase, v.Servers)
			}
			return err
		})
	}
}

// testRows: each replica has a row; what it answers is not signed, and has no serial.
func (c corednsTest) testRows() {
	c.waitInSync("dnszone.main", "arecord.www")
	for _, object := range []string{"dnszone.main", "arecord.www"} {
		for _, replica := range c.world.addrs() {
			c.waitRow(object, replica, syncv1.StateInSync, "not signed")
			if v, row, err := c.rowOf(c.Context(), object, replica); err != nil || row.Serial != nil || len(v.Servers) != 3 {
				c.Errorf("%s: row %+v of %d, %v", object, row, len(v.Servers), err)
			}
		}
	}
}

func (c corednsTest) testChanges() {
	c.create(c.aRecord("gone", "gone", "192.0.2.20"))
	c.waitOutside("gone.coredns.example.", []string{"192.0.2.20"}, c.world.addrs()...)
	c.waitInSync("arecord.gone")
	change(c.fixture, c.aRecord("gone", "gone"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{"192.0.2.21"} })
	c.waitOutside("gone.coredns.example.", []string{"192.0.2.21"}, c.world.replicas[0].addr)
	c.deleteAnyway(c.aRecord("gone", "gone"))
	c.waitOutside("gone.coredns.example.", nil, c.world.replicas[0].addr)
	c.waitInSync("dnszone.main")
}

// testCachedAnswer: a replica that answers from its cache what was declared before is behind, not wrong.
func (c corednsTest) testCachedAnswer() {
	cached := c.aRecord("cached", "cached", "192.0.2.30")
	ttl := int64(20)
	cached.Spec.TTL = &ttl
	c.create(cached)
	c.waitOutside("cached.coredns.example.", []string{"192.0.2.30"}, c.world.replicas[1].addr)
	change(c.fixture, c.aRecord("cached", "cached"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{"192.0.2.31"} })
	c.waitRow("arecord.cached", c.world.replicas[0].addr, syncv1.StateInSync, "not signed")
	c.waitRow("arecord.cached", c.world.replicas[1].addr, syncv1.StateStale, "cache")
	c.waitInSync("arecord.cached")
}

// testDrift: what somebody else deletes in etcd comes back, and is not in sync until it has.
func (c corednsTest) testDrift() {
	keys, err := c.world.keys(c.Context(), "/skydns/example/coredns/www/")
	if err != nil || len(keys) == 0 {
		c.Fatalf("keys %v, %v", keys, err)
	}
	if _, err := c.world.client.Delete(c.Context(), keys[0]); err != nil {
		c.Fatal(err)
	}
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		now, err := c.world.keys(ctx, "/skydns/example/coredns/www/")
		if err == nil && !slices.Equal(now, keys) {
			err = fmt.Errorf("etcd has %v", now)
		}
		return err
	})
	c.waitOutside("www.coredns.example.", []string{"192.0.2.10"}, c.world.replicas[0].addr)
	c.waitInSync("arecord.www", "dnszone.main")
}

// testUnsupported: a record that CoreDNS cannot hold is refused for its own, with a warning, and is on the other servers.
func (c corednsTest) testUnsupported() {
	caa := &v1beta1.CAARecord{ObjectMeta: c.meta("caa", c.labels())}
	caa.Spec.Name, caa.Spec.Flags, caa.Spec.Tag, caa.Spec.Value = "www", 0, "issue", "ca.example"
	c.create(caa)
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(caa), caa); err != nil {
			return err
		}
		accepted := meta.FindStatusCondition(caa.Status.Conditions, status.Accepted)
		if accepted == nil || accepted.Reason != status.Unsupported || !strings.Contains(accepted.Message, "DNSProvider etcd") || !strings.Contains(accepted.Message, "CAA") {
			return fmt.Errorf("the record says %+v", accepted)
		}
		v, err := c.status(ctx, "caarecord.caa")
		if err == nil && (v.Status.Phase != syncv1.PhaseFailed || v.Status.FailureReason != status.Unsupported) {
			err = fmt.Errorf("its SyncStatus says %+v", v.Status)
		}
		return err
	})
	c.waitServed("www.coredns.example.", "CAA", `0 issue "ca.example"`)
	c.waitInSync("arecord.www")
	c.deleteAnyway(caa)
	c.waitInSync("dnszone.main")
}

func (c corednsTest) testReplicaStopped() {
	c.world.replicas[0].process.Kill()
	c.waitRow("arecord.www", c.world.replicas[0].addr, syncv1.StateUnreachable, "")
	c.waitProvider(c.provider, status.Reachable, metav1.ConditionFalse, status.Unreachable)
	change(c.fixture, c.aRecord("www", "www"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{"192.0.2.11"} })
	c.waitOutside("www.coredns.example.", []string{"192.0.2.11"}, c.world.replicas[1].addr)
	c.world.replicas[0].process.Start()
	c.waitInSync("arecord.www", "dnszone.main")
	c.waitProvider(c.provider, status.Ready, metav1.ConditionTrue, status.AllReady)
}

// testEtcdStopped: the other servers go on, the zone and the provider say what is wrong, and what was missed follows.
func (c corednsTest) testEtcdStopped() {
	c.world.etcd.Kill()
	c.create(c.aRecord("late", "late", "192.0.2.40"))
	c.waitServed("late.coredns.example.", "A", "192.0.2.40")
	c.waitProvider(c.provider, status.Reachable, metav1.ConditionFalse, status.Unreachable)
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		zone := c.dnsZone("main", c.zone)
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		if len(zone.Status.Providers) != 1 || zone.Status.Providers[0].Status != v1beta1.ZoneFailed || !strings.Contains(zone.Status.Providers[0].Message, "etcd") {
			return fmt.Errorf("the zone says %+v", zone.Status.Providers)
		}
		if v, err := c.status(ctx, "arecord.late"); err != nil || v.Status.InSync {
			return fmt.Errorf("late is in sync, or %w", err)
		}
		return nil
	})
	c.world.etcd.Start()
	c.waitOutside("late.coredns.example.", []string{"192.0.2.40"}, c.world.replicas[0].addr)
	c.waitInSync("arecord.late", "dnszone.main")
	c.waitProvider(c.provider, status.Ready, metav1.ConditionTrue, status.AllReady)
}

// testService: the endpoints of a Service are the replicas, and the controller may list them because the provider says so.
func (c corednsTest) testService() {
	replica := c.world.replicas[0].addr
	service := &corev1.Service{ObjectMeta: c.meta("coredns", nil)}
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.Ports = []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta: c.meta("coredns-1", map[string]string{discoveryv1.LabelServiceName: "coredns"}), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{replica.Addr().String()}}, {Addresses: []string{"192.0.2.254"}, Conditions: discoveryv1.EndpointConditions{Terminating: new(true)}}},
	}
	c.create(service, endpoints)
	change(c.fixture, c.provider, func(p *v1beta1.DNSProvider) {
		p.Spec.CoreDNS.Servers = v1beta1.CoreDNSServers{Service: &v1beta1.ServiceReference{Name: "coredns", Port: int32(replica.Port())}}
	})
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		v, err := c.status(ctx, "arecord.www")
		if err == nil && (!v.Status.InSync || len(v.Servers) != 2) {
			err = fmt.Errorf("%s, rows %+v", v.Status.Phase, v.Servers)
		}
		return err
	})
	c.waitProvider(c.provider, status.Ready, metav1.ConditionTrue, status.AllReady)
	if s := c.provider.Status.Servers; len(s) != 1 || s[0].Address != replica.String() || !s[0].Reachable {
		c.Errorf("servers %+v", s)
	}
}

func (c corednsTest) testZoneDeleted() {
	c.deleteAnyway(c.dnsZone("main", c.zone))
	c.waitNoKeys()
}

// waitNoKeys waits until nothing of the zone is in etcd.
func (c corednsTest) waitNoKeys() {
	c.Helper()
	kube.Eventually(c, kube.Settle, c.checkNoKeys)
}

func (c corednsTest) checkNoKeys(ctx context.Context) error {
	keys, err := c.world.keys(ctx, "/skydns/")
	if err == nil && len(keys) > 0 {
		err = errors.New("etcd still has " + strings.Join(keys, " "))
	}
	return err
}

// testNamespaceDeleted: what is in etcd goes with the zone, although the provider and its Secret go first. A controller that starts only then
// cannot know how to get there: nothing is promised of it.
func (c corednsTest) testNamespaceDeleted() {
	zone := c.dnsZone("main", c.zone)
	zone.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "etcd"}}
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		again := zone.DeepCopy()
		return c.client.Create(ctx, again) // The former one may not be gone yet.
	})
	c.create(c.aRecord("ending", "ending", "192.0.2.60"))
	c.waitOutside("ending.coredns.example.", []string{"192.0.2.60"}, c.world.replicas[0].addr)
	before := c.controllers(c.Context())
	c.deleteNamespace(c.provider, &corev1.Secret{ObjectMeta: c.meta("etcd-user", nil)}, &corev1.Secret{ObjectMeta: c.meta("etcd-ca", nil)})
	kube.Eventually(c, kube.Settle, func(ctx context.Context) error {
		err := c.checkNoKeys(ctx)
		if now := c.controllers(ctx); err != nil && now != before {
			c.Skipf("the controller started anew meanwhile (%s, now %s): %v", before, now, err)
		}
		return err
	})
}

// controllers names the controller's processes: another text means that one has started.
func (f *fixture) controllers(ctx context.Context) string {
	f.Helper()
	var b strings.Builder
	for _, pod := range f.componentPods(ctx, "controller") {
		for _, container := range pod.Status.ContainerStatuses {
			fmt.Fprintf(&b, "%s %s ", pod.Name, container.ContainerID)
		}
	}
	return b.String()
}
