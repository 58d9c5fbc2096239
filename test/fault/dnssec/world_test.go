package dnssec

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/lockstep-dns/lockstep/apiserver"
	"github.com/lockstep-dns/lockstep/apiserver/registry"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	"github.com/lockstep-dns/lockstep/test/named"
)

const (
	parentName = "test."
	zoneName   = "example.test."
	zoneObject = "dnszone.example.test"
)

// owners are the owner names of the zone's records, by the name of their object.
var owners = map[string]string{"www": "www", "api": "api", "mail": "mail", "wild": "*.wild"}

// address is what all records have.
const address = "192.0.2.10"

// questions are those that decide about each object.
var questions = func() map[string][]rrset {
	all := map[string][]rrset{}
	for _, k := range validate.ZoneQuestions(zoneName) {
		all[zoneObject] = append(all[zoneObject], rrset{k.Name, k.Type})
	}
	for object, owner := range owners {
		all["arecord."+object] = []rrset{{owner + "." + zoneName, dns.TypeA}}
	}
	return all
}()

func allQuestions() (all []rrset) {
	for _, some := range questions {
		all = append(all, some...)
	}
	return all
}

// world is a signed zone on several servers, its signed parent on another one, and the API server's code that judges them.
type world struct {
	*fakekube.Cluster
	t       *testing.T
	name    string
	parent  *server
	servers []*server
	// above signs the parent, below the zone.
	above, below *signer
	// storage answers requests. What is watched is another replica's: what requests find does not help it.
	storage storage
	// A fault of the parent is alone.
	mu sync.RWMutex
	*watched
}

// storage are the SyncStatuses of a replica of the API server.
type storage interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

// server is a named whose answers pass through a proxy.
type server struct {
	*named.Server
	*judges
	t     testing.TB
	name  string
	zone  string
	proxy *named.Proxy
	// good is what it serves without a fault.
	good   content
	serial uint32
}

func newWorld(t *testing.T, name string, r *rand.Rand, servers int) *world {
	algorithms := []uint8{dns.ECDSAP256SHA256, dns.ED25519, dns.RSASHA256, dns.ECDSAP384SHA384}
	denial := func(zone string) *dns.NSEC3PARAM {
		if r.IntN(2) == 0 {
			return nil
		}
		return params(zone, uint16(r.IntN(3)), [...]string{"", "ab", "c0ffee"}[r.IntN(3)])
	}
	w := &world{
		Cluster: fakekube.New(t), t: t, name: name,
		above: newSigner(t, parentName, algorithms[r.IntN(len(algorithms))], denial(parentName)),
		below: newSigner(t, zoneName, algorithms[r.IntN(len(algorithms))], denial(zoneName)),
	}
	w.parent = w.newServer(t, "parent", parentName, w.above.sign(w.delegation(w.below.ds()), lasting()))
	good := w.below.sign(w.records(1), lasting())
	for i := range servers {
		s := w.newServer(t, fmt.Sprintf("s%d", i), zoneName, good)
		s.judges = newJudges(t, w.above.ksk, s.proxy.Addr, w.parent.proxy.Addr)
		w.servers = append(w.servers, s)
	}
	w.storage = w.newReplica(t)
	w.declare()
	return w
}

// delegation is the parent's content with some DS records.
func (w *world) delegation(ds ...*dns.DS) content {
	serial := uint32(1)
	if w.parent != nil {
		serial = w.parent.next()
	}
	all := unsigned(w, parentName, serial, "example NS ns1.example\nns1.example A 192.0.2.1")
	for _, one := range ds {
		all = append(all, one)
	}
	return all
}

// records is the zone's content before it is signed.
func (w *world) records(serial uint32) content {
	var lines strings.Builder
	for _, owner := range owners {
		fmt.Fprintf(&lines, "%s A %s\n", owner, address)
	}
	return unsigned(w, zoneName, serial, lines.String())
}

// newReplica starts the API server's code, with the options of the program.
func (w *world) newReplica(t *testing.T) storage {
	anchors := validate.Anchors{parentName: {w.above.ds()}}
	options := apiserver.NewOptions().Verdicts
	options.TrustAnchors = func() *validate.Anchors { return &anchors }
	inf := w.NewInformers()
	verdicts, err := registry.NewFrom(inf, w.FindServers, w.ReadKey, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go verdicts.Run(ctx)
	w.Eventually("the caches are filled", inf.HasSynced)
	return verdicts.Storage()["syncstatuses"].(storage)
}

// declare declares servers, zones and records, and waits until a watch says that all are secure.
func (w *world) declare() {
	w.Server(w.parent.name, v1beta1.RolePrimary, w.parent.proxy.Addr)
	var names []string
	for _, s := range w.servers {
		w.Server(s.name, v1beta1.RolePrimary, s.proxy.Addr)
		names = append(names, s.name)
	}
	z := fakekube.Zone(strings.TrimSuffix(zoneName, "."), names...)
	w.Apply(fakekube.Zone(strings.TrimSuffix(parentName, "."), w.parent.name))
	w.Apply(z)
	for object, owner := range owners {
		r := w.Record(z, object, address)
		r.Spec.Name = owner
		w.SetProgrammed(z, r)
		w.Apply(r)
	}
	w.watched = watch(w, w.newReplica(w.t))
	w.Eventually("everything is secure", func() bool {
		for _, s := range w.servers {
			for object := range questions {
				if w.last(object, s.name).security != syncv1.SecuritySecure {
					return false
				}
			}
		}
		return true
	})
}

func requestContext() context.Context {
	return request.WithNamespace(context.Background(), fakekube.Namespace)
}

// get is the row of a server in the SyncStatus of an object.
func (w *world) get(object string, s *server) (syncv1.ServerStatus, error) {
	o, err := w.storage.Get(requestContext(), object, &metav1.GetOptions{})
	if err != nil {
		return syncv1.ServerStatus{}, err
	}
	return rowOf(o.(*syncv1.SyncStatus), s.name), nil
}

func rowOf(s *syncv1.SyncStatus, name string) syncv1.ServerStatus {
	for _, row := range s.Servers {
		if row.Instance == name {
			return row
		}
	}
	return syncv1.ServerStatus{}
}

// said is what a watch said of a server at a time.
type said struct {
	at       time.Time
	security syncv1.Security
	message  string
}

// watched is what a watch of everything has said.
type watched struct {
	mu  sync.Mutex
	all map[string][]said // by object and server
}

func watch(t testing.TB, s storage) *watched {
	events, err := s.Watch(requestContext(), &internalversion.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	out := &watched{all: map[string][]said{}}
	go func() {
		for e := range events.ResultChan() {
			if o, ok := e.Object.(*store.Object); ok {
				out.add(o.SyncStatus)
			}
		}
	}()
	return out
}

func (w *watched) add(s *syncv1.SyncStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range s.Servers {
		row := &s.Servers[i]
		k := s.Name + " " + row.Instance
		w.all[k] = append(w.all[k], said{time.Now(), row.Security, row.Message})
	}
}

// last is what the watch said last of an object on a server.
func (w *watched) last(object, server string) said {
	all := w.since(object, server, time.Time{})
	if len(all) == 0 {
		return said{}
	}
	return all[len(all)-1]
}

// since is what the watch has said of an object on a server since a time.
func (w *watched) since(object, server string, at time.Time) (out []said) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all[object+" "+server] {
		if one.at.After(at) {
			out = append(out, one)
		}
	}
	return out
}

// updatePolicy makes a zone dynamic, and so its file named's own.
var updatePolicy = regexp.MustCompile(`update-policy \{[^}]*\};`)

func (w *world) newServer(t *testing.T, name, zone string, good content) *server {
	t.Helper()
	s := &server{t: t, name: name, zone: zone, good: good, serial: 1}
	s.Server = named.Start(t, named.Options{Transfer: w.Key, Zones: []named.Zone{{Name: zone, File: good.text()}}})
	path := filepath.Join(s.Dir, "named.conf")
	conf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, updatePolicy.ReplaceAll(conf, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Rndc("reconfig"); err != nil {
		t.Fatal(err, out)
	}
	s.proxy = named.StartProxy(t, s.Addr)
	return s
}

// next is a serial that is newer than all before.
func (s *server) next() uint32 {
	s.serial++
	return s.serial
}

// serves puts a content in place of what the server has, and returns when it answers by it.
func (s *server) serves(c content) {
	loaded := func() int { return strings.Count(s.Log(), ": loaded serial ") }
	before := loaded()
	path := filepath.Join(s.Dir, strings.TrimSuffix(s.zone, ".")+".zone")
	if err := os.WriteFile(path, []byte(c.text()), 0o600); err != nil {
		s.t.Error(err)
		return
	}
	now := time.Now() // What the file system says can be some milliseconds old: older than what named has loaded.
	if err := os.Chtimes(path, now, now); err != nil {
		s.t.Error(err)
		return
	}
	if out, err := s.Rndc("reload", s.zone); err != nil {
		s.t.Error(err, out)
		return
	}
	for deadline := time.Now().Add(time.Minute); loaded() == before; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("%s has not loaded its zone:\n%s", s.name, s.Log())
			return
		}
	}
}

// answers has the server's answers changed on their way; those to whoever has its key stay as they are.
func (s *server) answers(change func(*dns.Msg)) {
	s.proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if change == nil || m.Unpack(reply) != nil || m.IsTsig() != nil {
			return reply, nil
		}
		change(m)
		return m.Pack()
	})
}
