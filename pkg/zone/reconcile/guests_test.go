package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// followedBy returns a provider whose secondaries transfer zones of the namespace.
func followedBy(namespace, name string, addresses ...string) *v1beta1.DNSProvider {
	p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	p.Spec.Secondaries = &v1beta1.SecondariesProvider{TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name + "-transfer"}}}
	for _, a := range addresses {
		p.Spec.Secondaries.Servers = append(p.Spec.Secondaries.Servers, v1beta1.ProviderServer{Address: a, Port: 53})
	}
	return p
}

// guest adds a provider with a secondary, which has the key of the rig's primaries, and returns what to call for its outcome.
func (r *rig) guest(outside *bind.Server, readBy v1beta1.ReadMethod) (outcome func(passResult) statuswriter.ServerOutcome) {
	p := followedBy("dns", "isp")
	p.Spec.Secondaries.Servers = []v1beta1.ProviderServer{{Address: outside.Addr.Addr().String(), Port: int32(outside.Addr.Port())}}
	p.Spec.Secondaries.ReadBy = readBy
	r.keys.Set(types.NamespacedName{Namespace: "dns", Name: "isp-transfer"}, &outside.Transfer)
	r.scope.providers = []*v1beta1.DNSProvider{p}
	r.scope.servers = serving.AddProviders(r.scope.servers, r.scope.providers)
	return func(result passResult) statuswriter.ServerOutcome { return r.outcomeOf(result, "isp") }
}

// A secondary outside follows our primary without anybody else's NOTIFY: the controller sends one while it is behind. With another
// key it is said to need the provider's.
func TestGuestFollows(t *testing.T) {
	for _, readBy := range []v1beta1.ReadMethod{v1beta1.ReadByTransfer, v1beta1.ReadByQuery} {
		t.Run(string(readBy), func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{})
			isClosed := readBy == v1beta1.ReadByQuery
			outside := bind.Start(t, bind.Options{Role: bind.Secondary, Primary: r.primary[0], Zones: []bind.Zone{{Name: rigZone}}, Closed: isClosed})
			outcome := r.guest(outside, readBy)
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			r.until("the secondary follows", func(p passResult) bool { return outcome(p).Current })
			stranger := bind.NewKey(outside.Transfer.Name)
			r.keys.Set(types.NamespacedName{Namespace: "dns", Name: "isp-transfer"}, &stranger)
			if o := outcome(r.pass()); o.Current || o.Err == nil || !strings.Contains(o.Err.Error(), "BADSIG") {
				t.Errorf("with a key that the secondary does not know: %+v", o)
			}
			r.withoutInstances()
			r.scope.servers = serving.AddProviders(nil, r.scope.providers)
			if result := r.pass(); result.event.Programmed.Reason != status.NoPrimaryInstances || !strings.Contains(result.event.Programmed.Message, "secondaries only") {
				t.Errorf("without a primary: %+v", result.event.Programmed)
			}
		})
	}
}

// Secondaries by address are servers of no zone: they are neither asked nor waited for, and need no place among the keys of primaries.
func TestSecondariesByAddress(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	p := followedBy("dns", "old", "192.0.2.77")
	p.Spec.Secondaries.TransferKey = nil
	r.scope.providers = []*v1beta1.DNSProvider{p}
	before := len(r.scope.servers)
	if r.scope.servers = serving.AddProviders(r.scope.servers, r.scope.providers); len(r.scope.servers) != before || len(serving.ServersOf(p)) != 1 {
		t.Errorf("%d servers of the zone, %d before; the provider has %v", len(r.scope.servers), before, serving.ServersOf(p))
	}
	r.mustSync()
	if membership.IsGuest(p, "") || serving.ProviderProblem(p) != "" {
		t.Errorf("a guest: %t, %q", membership.IsGuest(p, ""), serving.ProviderProblem(p))
	}
}

// A secondary that lets nobody transfer the zone is compared by questions after the primaries differed: it may be on their serial with
// what no primary has.
func TestGuestReadByQueryThatMixedTwoPrimaries(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	outside := bind.Start(t, bind.Options{
		Role: bind.Secondary, Primary: r.primary[0], AlsoPrimaries: []netip.AddrPort{r.primary[1].Addr}, Zones: []bind.Zone{{Name: rigZone}}, Closed: true,
	})
	outcome := r.guest(outside, v1beta1.ReadByQuery)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	for n := range 50 { // BIND gives the zone whole when that is less than its changes.
		r.zones.Set(r.a(fmt.Sprint("other-", n), 1, "192.0.2.12"))
	}
	r.until("all are in sync", func(p passResult) bool { return outcome(p).Current })

	r.byHand(0, "one", "192.0.2.1")
	serial := r.observer.Serial(t.Context(), peerOf(r.primary[0]), rigZone, nil).Serial
	if err := wire.Notify(t.Context(), outside.Addr, rigZone, serial, &outside.Transfer); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); served(t, outside, "one") == nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the secondary does not get what was added by hand")
		}
	}
	r.primary[0].Stop()
	r.byHand(1, "two", "192.0.2.2")
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	r.until("the secondary is to transfer the zone again", func(p passResult) bool {
		out := outcome(p)
		if out.Current {
			t.Fatal("it passes for one in sync")
		}
		return errors.Is(out.Err, host.ErrTransfer) && strings.Contains(out.Err.Error(), "have it transfer the whole zone")
	})
	if got := served(t, outside, "www"); served(t, outside, "two") != nil || !slices.Equal(got, []string{"192.0.2.11"}) {
		t.Fatalf("the secondary has what it should have missed, or has %v at www: this test shows nothing", got)
	}
	if out, err := outside.Rndc("retransfer", rigZone); err != nil {
		t.Fatal(err, out)
	}
	r.until("it is in sync", func(p passResult) bool { return outcome(p).Current })
	if got := served(t, outside, "two"); !slices.Equal(got, []string{"192.0.2.2"}) {
		t.Errorf("it has %v", got)
	}
}

// A primary that has lost the zone gets back from a secondary outside what nobody declares, unless that is a former zone's of the same name: such
// a server knows nothing of DNSZones. The secondary follows in any case.
func TestGuestGivesBackTheZoneAlone(t *testing.T) {
	const created = 1_600_000_000
	for name, c := range map[string]struct {
		// had is the secondary's serial, status the zone's.
		had    uint32
		status *int64
		want   []string
	}{
		"the zone was on no server yet":              {created + 7, nil, nil},
		"older than the zone":                        {created - 7, new(int64(created + 9)), nil},
		"the zone's":                                 {created + 7, new(int64(created + 7)), []string{"192.0.2.66"}},
		"the zone's, before its last change":         {created + 7, new(int64(created + 9)), []string{"192.0.2.66"}},
		"the zone's, of which no status is known":    {created + 9, new(int64(created + 7)), []string{"192.0.2.66"}},
		"the zone's, whose serials are no times":     {6, new(int64(7)), []string{"192.0.2.66"}},
		"older, and ahead of what would be a serial": {created + 1<<30, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{})
			r.sidecar = addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}
			r.scope.servers, r.scope.instances = r.scope.servers[:1], r.scope.instances[:1]
			outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Serial: c.had, Records: "login A 192.0.2.66"}}})
			r.guest(outside, v1beta1.ReadByTransfer)
			r.zone.CreationTimestamp, r.zone.Status.Serial = metav1.Unix(created, 0), c.status
			r.zones.Set(r.zone)
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			r.rndc("delzone", rigZone)
			r.mustSync()
			r.holds("www", "192.0.2.10")
			r.holds("login", c.want...)
			if serial := r.look(r.primary[0]).SOA.Serial; !rrset.SerialLess(c.had, serial) {
				t.Errorf("the secondary does not follow from serial %d to %d", c.had, serial)
			}
		})
	}
}
