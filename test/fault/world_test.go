package fault

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

const (
	// system is the namespace of the installation.
	system = "lockstep-system"
	// restTimeout is how long the world may take to say that it is in sync after the last fault of a batch.
	restTimeout = 2 * time.Minute
	// remakeTimeout is how long an object that was deleted may take to be made again.
	remakeTimeout = 2 * time.Minute
	// atOnce is how many faults there are at the same time.
	atOnce = 4
	// zoneTTL is the TTL of what declares none.
	zoneTTL = 600
)

// fleet is a set of servers, and the zones on them.
type fleet struct {
	name                   string
	primaries, secondaries int32
	zones                  []string
}

// balanced is the fleet whose secondaries have load balancers.
const balanced = "trio"

var fleets = []fleet{
	{"duo", 2, 0, []string{"one.example", "two.example"}},
	{"trio", 1, 2, []string{"three.example", "four.example"}},
}

// pods are the names of a fleet's pods, primaries first.
func (f fleet) pods() []string {
	var names []string
	for i := range f.primaries {
		names = append(names, fmt.Sprintf("%s-primary-%d-0", f.name, i))
	}
	for i := range f.secondaries {
		names = append(names, fmt.Sprintf("%s-secondary-%d-0", f.name, i))
	}
	return names
}

// world is everything that the driver acts on.
type world struct {
	*testing.T
	client    client.Client
	namespace string
	history   *history
	observer  *observer
	slots     []*slot
	// changing is held for reading during each change of an object, and for writing while the world rests.
	changing sync.RWMutex
	workload sync.WaitGroup
	// remade waits for objects that were deleted.
	remade sync.WaitGroup
	stop   context.CancelFunc

	// repairing is held while a component of Kubernetes that was killed is started again.
	repairing sync.Mutex

	// began is when the run did.
	began time.Time

	mutex sync.Mutex
	rng   *rand.Rand
	busy  map[string]bool
	// ended are the containers of components that have ended by themselves.
	ended map[string]bool
	// withdrawn are the Services whose load balancers have no address now.
	withdrawn map[string]bool
	// outages are the times without kube-apiserver or etcd, in order.
	outages []outage
}

// newWorld starts the fleets, declares the zones, and begins to change objects.
func newWorld(t *testing.T, dir string, r *run) *world {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("history-%03d.jsonl", r.Parts))
	w := &world{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "fault"), history: openHistory(t, path),
		rng: rand.New(rand.NewPCG(r.Seed, uint64(r.Parts))), busy: map[string]bool{}, withdrawn: map[string]bool{}, ended: map[string]bool{}, began: time.Now()}
	startFar(t, w.client)
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	w.workload.Go(func() { w.keepBalanced(ctx) })
	for _, f := range fleets {
		w.createFleet(f)
	}
	kube.Kubectl(t, "", "-n", w.namespace, "wait", "--for=condition=Ready", "bind9clusters.bindy.firestoned.io,dnszones.bindy.firestoned.io", "--all", "--timeout=120s")
	if _, err := w.find(w.namespace, allPods()[0], "named"); err != nil {
		t.Skipf("faults need the processes of servers on this machine: %v", err)
	}
	zones, sizes := map[string]any{}, map[string]any{}
	for _, f := range fleets {
		sizes[f.name] = f.primaries + f.secondaries
		for _, zone := range f.zones {
			w.slots = append(w.slots, slotsOf(zone)...)
			zones[zone] = entry{"object": zoneObject(zone), "fleet": f.name, "ttl": zoneTTL, "keys": keysOf(zone), "foreign": foreignKeys(zone)}
		}
	}
	w.history.write("world", entry{"zones": zones, "fleets": sizes, "balancers": slices.Sorted(maps.Values(loadBalancers))})
	w.observer = startObserver(t, path, map[string]any{"namespace": w.namespace, "zones": zones, "far": farName})
	w.startWorkload(ctx)
	return w
}

func zoneObject(zone string) string { name, _, _ := strings.Cut(zone, "."); return name }

func (w *world) createFleet(f fleet) {
	w.Helper()
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: f.name}}
	cluster.Spec.Primary, cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: &f.primaries}, &v1beta1.RoleConfig{Replicas: &f.secondaries}
	if f.name == balanced {
		cluster.Spec.Secondary.Service = &v1beta1.ServiceConfig{Spec: &corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false)}}
	}
	objects := []client.Object{cluster}
	for _, zone := range f.zones {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: zoneObject(zone)}}
		ttl := int64(zoneTTL)
		z.Spec.ZoneName, z.Spec.ClusterRef, z.Spec.TTL = zone, f.name, &ttl
		z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + zone + ".", AdminEmail: "hostmaster." + zone + ".", Refresh: 3600, Retry: 600, Expire: 604800}
		if f.name == balanced {
			for i, service := range slices.Sorted(maps.Keys(loadBalancers)) {
				z.Spec.NameServers = append(z.Spec.NameServers, v1beta1.NameServer{Hostname: fmt.Sprintf("ns%d.%s.", i+1, zone), IPv4Address: loadBalancers[service]})
			}
		}
		z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": z.Name}}}}
		objects = append(objects, z)
	}
	for _, o := range objects {
		if err := w.client.Create(w.Context(), o); err != nil {
			w.Fatal(err)
		}
	}
}

// random returns a number below n.
func (w *world) random(n int) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.rng.IntN(n)
}

func pick[T any](w *world, of ...T) T { return of[w.random(len(of))] }

// between returns a duration between two, in milliseconds.
func (w *world) between(least, most int) time.Duration {
	return time.Duration(least+w.random(most-least+1)) * time.Millisecond
}

// pause lets time pass: how long a fault lasts, and how changes follow each other, is part of what is tested.
func (w *world) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.Context().Done():
	}
}

// until repeats a check until it returns nil, and returns its last error when it has not done so in time.
func (w *world) until(limit time.Duration, check func(context.Context) error) error {
	limit = kube.Patience(limit).Duration()
	var last error
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = check(call)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %s: %w", limit, last)
	}
	return nil
}

// pod reads a pod.
func (w *world) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	return p, w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p)
}

// disturb does so many faults, several at a time, and returns how many.
func (w *world) disturb(count int) int {
	var group sync.WaitGroup
	tickets := make(chan int, count)
	for i := range count {
		tickets <- i
	}
	close(tickets)
	for range atOnce {
		group.Go(func() {
			for range tickets {
				w.oneFault()
				w.pause(w.between(200, 1500))
			}
		})
	}
	group.Wait()
	return count
}

// rest waits until every status says that all is well, with no change under way, and has this judged.
func (w *world) rest() {
	w.Helper()
	w.changing.Lock()
	defer w.changing.Unlock()
	began := time.Now()
	if err := w.until(restTimeout, w.isAtRest); err != nil {
		w.Logf("the world is not at rest: %v", err)
	}
	w.noteEnded()
	w.Logf("at rest %s after the last fault", time.Since(began).Round(100*time.Millisecond))
	w.remade.Wait()
	w.transferAll()
	w.observer.rest()
}

// isAtRest returns what is not in sync, and what is still to go.
func (w *world) isAtRest(ctx context.Context) error {
	var list syncv1.SyncStatusList
	if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	serials, servers := map[string][]int64{}, map[string]int{}
	for i := range list.Items {
		s := &list.Items[i]
		if !s.Status.InSync {
			return fmt.Errorf("%s is %s: %s %s", s.Name, s.Status.Phase, s.Status.FailureMessage, messagesOf(s))
		}
		// What vantages find is a few seconds old.
		if c := meta.FindStatusCondition(s.Status.Conditions, "Answered"); c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Errorf("clients of %s: %s", s.Name, c.Message)
		}
		servers[s.ObjectRef.Name] = len(s.Servers)
		if serials[s.ObjectRef.Name] = serialsOf(s); len(serials[s.ObjectRef.Name]) > 1 {
			return fmt.Errorf("the servers of %s have the serials %v", s.Name, serials[s.ObjectRef.Name])
		}
	}
	return cmp.Or(w.storedProblem(ctx), w.lateZone(ctx, serials, servers))
}

// lateZone returns a zone whose stored status does not tell that all servers hold its serial, and all records: it follows within a second or two.
func (w *world) lateZone(ctx context.Context, serials map[string][]int64, servers map[string]int) error {
	var zones v1beta1.DNSZoneList
	if err := w.client.List(ctx, &zones, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for _, zone := range zones.Items {
		declared := 0
		for _, s := range w.slots {
			if s.there && zoneObject(s.zone) == zone.Name {
				declared += s.declarations()
			}
		}
		serial := serials[zone.Name]
		if len(serial) == 0 {
			return fmt.Errorf("no server tells a serial of DNSZone %s", zone.Name)
		}
		want := fmt.Sprintf("%d of %[1]d servers hold serial %d, %d of %[3]d records", servers[zone.Name], serial[0], declared)
		if c := meta.FindStatusCondition(zone.Status.Conditions, "Ready"); c == nil || !strings.Contains(c.Message, want) {
			return fmt.Errorf("DNSZone %s does not tell %s: %+v", zone.Name, want, c)
		}
	}
	return nil
}

// serialsOf returns the serials that servers have of a zone. With one content they may still be about to take one serial.
func serialsOf(s *syncv1.SyncStatus) []int64 {
	if s.ObjectRef.Kind != "DNSZone" {
		return nil
	}
	var all []int64
	for _, row := range s.Servers {
		if row.Serial != nil {
			all = append(all, *row.Serial)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func messagesOf(s *syncv1.SyncStatus) []string {
	var all []string
	for _, row := range s.Servers {
		if row.Message != "" {
			all = append(all, row.Pod+": "+row.Message)
		}
	}
	return all
}

// storedProblem returns an object whose stored status does not say of its generation that all is done, or that is still being
// deleted.
func (w *world) storedProblem(ctx context.Context) error {
	for kind, condition := range storedKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, o := range list.Items {
			if o.GetDeletionTimestamp() != nil {
				return fmt.Errorf("%s %s is being deleted", o.GetKind(), o.GetName())
			}
			if c := findCondition(o, condition); c["status"] != "True" || c["observedGeneration"] != o.GetGeneration() {
				return fmt.Errorf("%s %s of generation %d: %s is %v", o.GetKind(), o.GetName(), o.GetGeneration(), condition, c)
			}
		}
	}
	return nil
}

// storedKinds returns the condition of each kind that says that all is done.
func storedKinds() map[schema.GroupVersionKind]string {
	kinds := map[schema.GroupVersionKind]string{
		v1alpha1.GroupVersion.WithKind(model.EndpointKind): "Programmed", v1beta1.GroupVersion.WithKind("DNSZone"): "Ready",
		v1beta1.GroupVersion.WithKind("Bind9Instance"): "Ready", v1beta1.GroupVersion.WithKind("Bind9Cluster"): "Ready",
	}
	for kind := range model.TypeOfKind {
		kinds[v1beta1.GroupVersion.WithKind(kind)] = "Ready"
	}
	return kinds
}

func findCondition(o unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// end ends the changes and the observer.
func (w *world) end() {
	w.Helper()
	w.stop()
	w.workload.Wait()
	w.observer.end()
}
