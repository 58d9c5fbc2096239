package integration

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// TestEvents: what happens to zones, instances, clusters and providers is in their Events, as kubectl describe shows them. Those of keys are
// part of TestKeyRotation, which takes longer.
func TestEvents(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "drifting.example", 1, 0)
	host := f.hostAddress()
	f.runSub("drift", func(f *fixture) {
		f.Parallel()
		driftIsReported(f)
	})
	for name, run := range map[string]func(*fixture){
		"deadline":  failedByDeadline,
		"transfers": func(in *fixture) { untransferredZone(in, host) },
		"provider":  func(in *fixture) { refusingProvider(in, host) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(&fixture{T: t, client: f.client, namespace: kube.Namespace(t, "events")})
		})
	}
}

// An instance, its cluster, and a zone that make no progress for too long fail. To them it has been long: the test sets their times back.
func failedByDeadline(f *fixture) {
	cluster := f.cluster("stuck", 1, 0)
	cluster.Spec.Image = &v1beta1.ImageConfig{Image: "lockstep.invalid/nothing:1", ImagePullPolicy: corev1.PullNever}
	zone := f.dnsZone("stuck", "stuck.example")
	zone.Spec.ClusterRef = "stuck"
	f.create(cluster, zone)
	instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta("stuck-primary-0", nil)}
	long := metav1.NewTime(time.Now().Add(-24 * time.Hour).Truncate(time.Second))
	for _, o := range []client.Object{instance, cluster} {
		f.setStatus(o, func() bool {
			life := &cluster.Status.LifecycleStatus
			if o == client.Object(instance) {
				life = &instance.Status.LifecycleStatus
			}
			started := life.PhaseSince != nil
			life.PhaseSince = &long
			return started
		})
	}
	f.setStatus(zone, func() bool {
		for i := range zone.Status.Bind9Instances {
			zone.Status.Bind9Instances[i].LastReconciledAt = &long
		}
		return len(zone.Status.Bind9Instances) > 0
	})
	for _, o := range []client.Object{instance, cluster, zone} {
		f.waitEvent(o, "Warning ProgressDeadlineExceeded")
	}
	f.isDescribed("ProgressDeadlineExceeded", "bind9instance/stuck-primary-0", "bind9cluster/stuck", "dnszone/stuck")
}

// setStatus changes the status of an object once it has one.
func (f *fixture) setStatus(o client.Object, edit func() bool) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if !edit() {
			return fmt.Errorf("%s has no status", o.GetName())
		}
		return f.client.Status().Update(ctx, o)
	})
}

// isDescribed expects kubectl describe to show an Event with a reason for each object.
func (f *fixture) isDescribed(reason string, objects ...string) {
	f.Helper()
	for _, o := range objects {
		_, events, found := strings.Cut(f.kubectl("describe", o), "\nEvents:")
		if !found || !strings.Contains(events, reason) {
			f.Errorf("kubectl describe %s shows no Event %s:\n%s", o, reason, events)
		}
	}
}

// What somebody changes again and again, and is corrected each time, is one Event.
func driftIsReported(f *fixture) {
	record := f.aRecord("drifting-www", "www", "192.0.2.1")
	f.create(record)
	f.waitReady(record)
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	for range 10 {
		f.updateByHand("dns-primary-0-0", addRecords("www.drifting.example. 3600 A 203.0.113.9"))
		f.waitServed("www.drifting.example", "A", "192.0.2.1")
	}
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(zone), zone); err != nil {
		f.Fatal(err)
	}
	f.waitEvent(zone, "Warning DriftCorrected", "corrected on the servers")
	f.waitEvent(record, "Warning ValueRemoved", "www.drifting.example. A", "203.0.113.9", "To have both")
	count := 0
	for _, e := range f.events(f.Context(), zone) {
		if strings.HasPrefix(e, "Warning DriftCorrected") {
			count++
		}
	}
	if count != 1 {
		f.Errorf("ten corrections are %d Events, want one that counts", count)
	}
	f.isDescribed("DriftCorrected", "dnszone/"+f.object)
}

// A secondary that does not transfer a zone is in the zone's Events, and so is the end of that. This one has a zone of its own in its place.
func untransferredZone(f *fixture, host netip.Addr) {
	zones := []namedtest.Zone{{Name: "untransferred.example."}}
	primary := namedtest.Start(f, namedtest.Options{Addr: freePort(f.T, host), Zones: zones})
	alone := namedtest.Start(f, namedtest.Options{Addr: freePort(f.T, host), Zones: zones, Update: primary.Update, Transfer: primary.Transfer})
	provider := f.outsidePrimary("corp", primary.Addr)
	provider.Spec.RFC2136.Secondaries = []v1beta1.ProviderServer{serverAt(alone.Addr)}
	zone := f.outsideZone("untransferred.example")
	f.create(f.keySecret("corp-update", primary.Update), f.keySecret("corp-transfer", primary.Transfer), provider, zone)
	// It is reported once that has lasted for a minute, and a controller that starts meanwhile counts anew.
	f.waitEventWithin(kube.Start, zone, "Warning ZoneTransferFailed", "stays at serial")
	f.isDescribed("ZoneTransferFailed", "dnszone/"+zone.Name)
	change(f, provider, func(p *v1beta1.DNSProvider) { p.Spec.RFC2136.Secondaries = nil })
	f.waitEvent(zone, "Normal FailureEnded", "ZoneTransferFailed")
}

// outsideZone returns a zone that only the servers of the provider corp have.
func (f *fixture) outsideZone(name string) *v1beta1.DNSZone {
	zone := f.dnsZone("outside", name)
	zone.Spec.ClusterRef, zone.Spec.ProviderRefs = "", []v1beta1.ProviderReference{{Name: "corp"}}
	return zone
}

// A provider whose server lets nobody transfer a zone says so in an Event, though it never was ready.
func refusingProvider(f *fixture, host netip.Addr) {
	outside := namedtest.Start(f, namedtest.Options{Addr: freePort(f.T, host), Closed: true, Zones: []namedtest.Zone{{Name: "refusing.example."}}})
	provider := f.outsidePrimary("corp", outside.Addr)
	zone := f.outsideZone("refusing.example")
	f.create(f.keySecret("corp-update", outside.Update), f.keySecret("corp-transfer", outside.Transfer), provider, zone)
	f.waitEvent(provider, "Warning TransferRefused", "readBy to Query")
	f.waitEvent(zone, "Warning Refused", dns.RcodeToString[dns.RcodeRefused])
	f.isDescribed("TransferRefused", "dnsprovider/corp")
}
