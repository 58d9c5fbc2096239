package registry

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// unsignedWorld is a zone in etcd, of which one server answers that is asked without a key as a replica of CoreDNS is, with NS records of its own.
type unsignedWorld struct {
	*world
	server *bind.Server
	zone   *v1beta1.DNSZone
}

func newUnsignedWorld(t *testing.T, records string) unsignedWorld {
	t.Helper()
	w := newWorld(t)
	server := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: records, Extra: "allow-transfer { none; };"}}})
	provider := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "etcd", UID: "etcd"}}
	provider.Spec.CoreDNS = &v1beta1.CoreDNSProvider{Servers: v1beta1.CoreDNSServers{
		Addresses: []v1beta1.ProviderServer{{Address: server.Addr.Addr().String(), Port: int32(server.Addr.Port())}},
	}}
	w.Apply(provider)
	z := fakekube.Zone("example.test")
	z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "etcd"}}
	u := unsignedWorld{w, server, z}
	u.setProvider(v1beta1.ZoneConfigured, "")
	return u
}

// setProvider sets what the controller last found in etcd.
func (u unsignedWorld) setProvider(state v1beta1.ZoneInstanceStatus, message string) {
	u.zone = u.zone.DeepCopy()
	u.zone.Status.Providers = []v1beta1.ZoneProvider{{Name: "etcd", Status: state, Message: message}}
	u.Apply(u.zone)
	u.Eventually("the zone has a server", func() bool {
		s := u.get("dnszone.example.test")
		return len(s.Servers) == 1 && s.Servers[0].Provider == "etcd" && s.Servers[0].Address != ""
	})
}

// declare declares a record that the controller programmed some time ago, or has not programmed yet.
func (u unsignedWorld) declare(programmed time.Duration, name, address string, ttl int64) {
	r := u.Record(u.zone, name, address)
	r.Spec.TTL = &ttl
	if programmed < 0 {
		r.Status = v1beta1.RecordStatus{}
	} else {
		u.SetProgrammed(u.zone, r)
		at := metav1.NewTime(time.Now().Add(-programmed))
		r.Status.LastUpdated = &at
		status.Set(&r.Status.Conditions, status.Programmed, status.True(status.Programmed, ""), r.Generation, at.Time)
	}
	u.Apply(r)
	u.Eventually("the caches have the record", func() bool {
		return u.verdicts.informers.Exists(keyOf("arecord."+name)) && len(u.verdicts.index.ZoneNames(keyOf("arecord."+name))) > 0
	})
}

func (u unsignedWorld) check(object string, state syncv1.ServerState, says string) {
	u.Helper()
	s := u.get(object)
	row := rowOf(s)
	if row.State != state || !strings.Contains(row.Message, says) || s.Status.InSync != (state == syncv1.StateInSync) || row.Serial != nil {
		u.Errorf("%s is %s, row %+v; want %s and %q", object, states(s), row, state, says)
	}
}

// An unsigned answer is in sync only beside the controller's word that etcd has the same; its row says so.
func TestUnsignedAnswer(t *testing.T) {
	u := newUnsignedWorld(t, "www 300 A 192.0.2.10\n")
	u.declare(time.Hour, "www", "192.0.2.10", 300)
	u.check("arecord.www", syncv1.StateInSync, "not signed")
	u.check("dnszone.example.test", syncv1.StateInSync, "not signed")
	u.setProvider(v1beta1.ZoneFailed, "etcd has no leader")
	u.check("arecord.www", syncv1.StateUnreachable, "etcd has no leader")
	u.check("dnszone.example.test", syncv1.StateUnreachable, "etcd has no leader")
	u.setProvider(v1beta1.ZoneClaimed, "")
	u.check("arecord.www", syncv1.StateStale, "has not read the same in etcd yet")
	u.setProvider(v1beta1.ZoneConfigured, "")
	u.declare(-1, "www", "192.0.2.10", 300)
	u.check("arecord.www", syncv1.StateStale, "has not read the same in etcd yet")
	u.check("dnszone.example.test", syncv1.StateStale, "has not read the same in etcd yet")
}

// What was declared before may be in a cache for its TTL: the server is behind. After that, it is wrong.
func TestUnsignedAnswerFromCache(t *testing.T) {
	u := newUnsignedWorld(t, "old 60 A 192.0.2.1\nwrong 60 A 192.0.2.1\ncounted 17 A 192.0.2.1\n")
	u.declare(10*time.Second, "old", "192.0.2.2", 60)
	u.check("arecord.old", syncv1.StateStale, "cache")
	u.check("dnszone.example.test", syncv1.StateStale, "cache")
	u.declare(10*time.Minute, "wrong", "192.0.2.2", 60)
	u.check("arecord.wrong", syncv1.StateDivergent, "answers otherwise")
	u.check("dnszone.example.test", syncv1.StateDivergent, "answers otherwise")
	u.declare(10*time.Second, "missing", "192.0.2.2", 60)
	u.check("arecord.missing", syncv1.StateStale, "cache")
	u.declare(10*time.Minute, "missing", "192.0.2.2", 60)
	u.check("arecord.missing", syncv1.StateMissing, "without the data")
	u.declare(10*time.Minute, "counted", "192.0.2.1", 60)
	u.check("arecord.counted", syncv1.StateInSync, "not signed")
	u.declare(10*time.Minute, "counted", "192.0.2.1", 10)
	u.check("arecord.counted", syncv1.StateDivergent, "")
}
