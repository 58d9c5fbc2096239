package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// tenants are instances of several namespaces, each with one pod, and the reconciler that programs their zones.
type tenants struct {
	*testing.T
	reconciler *reconciler
	objects    []client.Object
	keys       *keyrotation.Cache
}

// join adds an instance of a namespace with its pod.
func (e *tenants) join(namespace string, addr netip.Addr, update, transfer *wire.Key) {
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"}}
	i.Spec.Role, i.Spec.ClusterRef = v1beta1.RolePrimary, "dns"
	i.Status.ServiceAddress = addr.String()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "server-0", Labels: map[string]string{serving.LabelInstance: "server", "app.kubernetes.io/name": "bind9"},
	}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addr.String(), Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	e.objects = append(e.objects, i, pod)
	e.keys.Set(keyrotation.UpdateKeySecret(i), update)
	e.keys.Set(keyrotation.TransferKeySecret(i), transfer)
}

// start runs the reconciler with the workers and turns that it has in the controller.
func (e *tenants) start() (queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	e.Helper()
	scheme := clientgoscheme.Scheme
	if err := v1beta1.AddToScheme(scheme); err != nil {
		e.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e.objects...).Build()
	observer := observe.New(observe.Options{})
	writer, zones := statuswriter.NewWriter(statuswriter.Options{Client: kube}), zonecache.New()
	e.reconciler = &reconciler{
		edges: edges{
			kube: kube, zones: zones, dns: unreachable.NewTracker(observer, zones.Enqueue), sendNotify: wire.Notify,
			sidecar: bindcar.NewClient(bindcar.ClientOptions{}), updates: rfc2136.New(rfc2136.Options{Timeout: updateTimeout}), keys: e.keys,
			serials: &notify.Serials{}, now: time.Now,
		},
		writer: writer, metrics: statuswriter.NewMetrics(nil),
		backoff:    workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval),
		recoveries: &recoveries{enqueue: zones.Enqueue},
	}
	turns := e.reconciler.turns(e.reconciler)
	c, err := controller.NewUnmanaged("zone", controller.Options{Reconciler: turns, MaxConcurrentReconciles: turns.Workers(), SkipNameValidation: new(true)})
	if err != nil {
		e.Fatal(err)
	}
	started := make(chan workqueue.TypedRateLimitingInterface[ctrl.Request], 1)
	for _, s := range []source.Source{turns, source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		zones.SetQueue(queue)
		started <- queue
		return nil
	})} {
		if err := c.Watch(s); err != nil {
			e.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	e.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return <-started
}

// declare has a zone of a namespace on its servers, and an A record www in it.
func (e *tenants) declare(namespace, name string, there bool) ctrl.Request {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{v1beta1.Finalizer},
	}}
	z.Spec.ZoneName, z.Spec.ClusterRef = name+".test", "dns"
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + name + ".test.", AdminEmail: "hostmaster." + name + ".test."}
	z.Spec.NameServerIPs = map[string]string{"ns1." + name + ".test.": "192.0.2.1"}
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": name}}}}
	if there {
		z.Status.Bind9Instances = []v1beta1.ZoneInstance{{Namespace: namespace, Name: "server", Status: v1beta1.ZoneConfigured}}
	}
	a := numbered(1, 1)
	a.Namespace, a.Name, a.Labels = namespace, name, map[string]string{"zone": name}
	a.Annotations[v1beta1.ZoneAnnotation] = name + ".test"
	a.Spec.Name = "www"
	e.reconciler.zones.Set(z)
	e.reconciler.zones.Set(a)
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(z)}
}

// tarpit knows for which zones it was waited for.
type tarpit struct {
	mu    sync.Mutex
	zones map[string]bool
}

// met returns for how many zones it was waited for so far.
func (p *tarpit) met() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.zones)
}

// startTarpit puts a host before a server that passes on what is asked over UDP. It accepts connections, to the sidecar too, and says nothing.
func startTarpit(t *testing.T, host netip.Addr, server *bind.Server) *tarpit {
	t.Helper()
	p := &tarpit{zones: map[string]bool{}}
	bind.StartProxyAt(t, netip.AddrPortFrom(host, serving.Port), server.Addr).Filter(func(network string, reply []byte) ([]byte, error) {
		if network == "udp" {
			return reply, nil
		}
		if m := new(dns.Msg); m.Unpack(reply) == nil && len(m.Question) > 0 {
			p.mu.Lock()
			p.zones[m.Question[0].Name] = true
			p.mu.Unlock()
		}
		return nil, nil
	})
	sidecar, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(host, layout.SidecarPort)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sidecar.Close() }) // The kernel accepts connections.
	return p
}

// zonesNamed are zones that a server has.
func zonesNamed(prefix string, count int) (zones []bind.Zone) {
	for i := range count {
		zones = append(zones, bind.Zone{Name: fmt.Sprintf("%s%d.test.", prefix, i)})
	}
	return zones
}

// Forty zones are on a server that says over UDP that it is there, accepts connections, and says nothing more. New zones of another namespace get their first pass meanwhile as
// if those were not there.
func TestTarpitDelaysNoZoneOfOthers(t *testing.T) {
	const hostile, honest = 40, 5
	host := func() netip.Addr {
		return netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(250)), byte(rand.IntN(250)), byte(1 + rand.IntN(250))})
	}
	trap, good := host(), host()
	hers := bind.Start(t, bind.Options{Zones: zonesNamed("tarpit", hostile)})
	pit := startTarpit(t, trap, hers)
	server := bind.Start(t, bind.Options{Zones: zonesNamed("new", honest)})
	bind.StartProxyAt(t, netip.AddrPortFrom(good, serving.Port), server.Addr)
	e := &tenants{T: t, keys: &keyrotation.Cache{Cache: tsigkey.NewCache(nil, time.Hour, 0)}}
	e.join("evil", trap, &hers.Update, &hers.Transfer)
	e.join("victim", good, &server.Update, &server.Transfer)
	queue := e.start()
	for i := range hostile {
		queue.Add(e.declare("evil", fmt.Sprint("tarpit", i), true))
	}
	for began := time.Now(); pit.met() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("nobody waits for the tarpit")
		}
	}
	for i := range honest {
		name, began := fmt.Sprint("new", i), time.Now()
		queue.Add(e.declare("victim", name, true))
		for !slices.Equal(addressesOf(t, server, "www."+name+".test."), []string{"192.0.2.2"}) {
			if time.Since(began) > time.Minute {
				t.Fatalf("the zone %s waits for the servers of others", name)
			}
			time.Sleep(10 * time.Millisecond)
		}
		met := pit.met()
		t.Logf("served after %s, %d zones have met the tarpit", time.Since(began).Round(time.Millisecond), met)
		if met == hostile {
			t.Errorf("the zone %s got its first pass when all zones of the other namespace had theirs", name)
		}
	}
}
