package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// The random test runs so many steps, in rounds that each end with a checkpoint, unless the environment says otherwise:
//
//	LOCKSTEP_RANDOM_SEED=7 LOCKSTEP_RANDOM_STEPS=2000 make test-cluster RUN=TestRandomChanges
//
// The seed decides the steps, 0 stands for another one each time. When things happen inside the cluster is not decided by
// it.
const (
	randomSeed  = 1
	randomSteps = 120
	randomRound = 20
	// slow is after how long a checkpoint logs what it waits for.
	slow = 10 * time.Second
)

// randomWorld is the model of everything that a random test does, and the cluster that it does it to.
type randomWorld struct {
	*fixture
	rng      *rand.Rand
	seed     uint64
	transfer *wire.Key
	update   *wire.Key
	objects  []*model.Object
	zones    []*zoneState
	// touched are the owner names whose declarations changed since the last checkpoint, frozen those that must not change
	// until the next one.
	touched, frozen map[string]bool
	made            int
	log             []string
	began           time.Time
}

// Random changes of everything at any moment, with servers and the controller killed in between: in the end every server
// holds what an independent model says, every object reports it, and what others put into the zones is still there.
func TestRandomChanges(t *testing.T) {
	kube.Disruptive(t, nil)
	w := newWorld(t)
	steps := int(fromEnvironment(t, "LOCKSTEP_RANDOM_STEPS", randomSteps))
	for i := 1; i <= steps; i++ {
		w.step(i)
		if i%randomRound == 0 || i == steps {
			w.checkpoint()
		}
	}
	t.Logf("%d steps in %s, %d objects at the end", steps, time.Since(w.began).Round(time.Second), len(w.objects))
}

func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func newWorld(t *testing.T) *randomWorld {
	t.Helper()
	f := newFleet(t)
	seed := fromEnvironment(t, "LOCKSTEP_RANDOM_SEED", randomSeed)
	if seed == 0 {
		seed = rand.Uint64()
	}
	w := &randomWorld{fixture: f, rng: rand.New(rand.NewPCG(seed, 0)), seed: seed,
		touched: map[string]bool{}, frozen: map[string]bool{}}
	t.Logf("LOCKSTEP_RANDOM_SEED=%d", seed)
	t.Cleanup(w.logHistory)
	f.create(f.cluster("dns", 2, 2))
	for _, z := range []*zoneState{
		{Zone: model.Zone{Object: "main", Name: "random.example."}},
		{Zone: model.Zone{Object: "child", Name: "child.random.example."}},
		{Zone: model.Zone{Object: "reverse", Name: "2.0.192.in-addr.arpa."}},
	} {
		z.selects, z.TTL, z.refresh = []string{z.Object}, 3600, 3600
		z.NameServers = []string{"ns1." + z.Name}
		w.zones = append(w.zones, z)
		w.createZone(z)
	}
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9cluster/dns", "dnszone/main", "dnszone/child", "dnszone/reverse")
	w.transfer, w.update = f.key(named.KeyTransfer), f.key(named.KeyUpdate)
	w.began = time.Now()
	return w
}

// createZone makes the zone's object and notes its age. Admission may still know a zone of the name that is gone.
func (w *randomWorld) createZone(z *zoneState) {
	w.Helper()
	o := w.zoneObject(z)
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error { return w.client.Create(ctx, o) })
	z.Created, z.UID = o.CreationTimestamp.Time, string(o.UID)
	z.Foreign, z.paused = map[string]model.RRset{}, false
}

// zoneObject is the zone as it is written to Kubernetes.
func (w *randomWorld) zoneObject(z *zoneState) *v1beta1.DNSZone {
	o := w.dnsZone(z.Object, z.dnsName())
	o.Spec.TTL, o.Spec.SOARecord.Refresh = &z.TTL, z.refresh
	o.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: z.selects}}}}}
	for _, server := range z.NameServers[1:] {
		ns := v1beta1.NameServer{Hostname: server}
		if addresses := z.Addresses[server]; len(addresses) > 0 {
			ns.IPv4Address = addresses[0]
		}
		o.Spec.NameServers = append(o.Spec.NameServers, ns)
	}
	if z.paused {
		o.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"}
	}
	return o
}

// logHistory prints what led to a failure.
func (w *randomWorld) logHistory() {
	if w.Failed() {
		w.Logf("LOCKSTEP_RANDOM_SEED=%d; the last of %d lines:\n%s", w.seed, len(w.log), strings.Join(w.log[max(0, len(w.log)-100):], "\n"))
		for _, deployment := range []string{"lockstep-controller", "lockstep-fleet"} {
			out, _ := kube.TryKubectl(w, "", "-n", system, "logs", "deployment/"+deployment, "--tail=3000")
			var ours []string
			for l := range strings.Lines(out) {
				if strings.Contains(l, w.namespace) {
					ours = append(ours, l)
				}
			}
			w.Logf("what %s logged last:\n%s", deployment, strings.Join(ours[max(0, len(ours)-80):], ""))
		}
	}
}

func (w *randomWorld) logStep(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%7.3f  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// checkpoint ends all pauses and waits until everything is as the model says.
func (w *randomWorld) checkpoint() {
	w.Helper()
	for _, z := range w.zones {
		if z.paused {
			w.pause(z, false)
		}
	}
	began, logged := time.Now(), time.Now()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		problems, err := w.problems(ctx)
		if time.Since(logged) > slow {
			logged = time.Now()
			w.Logf("not in sync for %s: %v\n%s", logged.Sub(began).Round(time.Second), err, strings.Join(problems, "\n"))
		}
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return errors.New(strings.Join(problems, "\n"))
		}
		return nil
	})
	clear(w.touched)
	clear(w.frozen)
	for _, z := range w.zones {
		z.frozen = false
	}
	w.logStep("in sync after %s", time.Since(began).Round(time.Millisecond))
	w.Logf("%s: %d objects in sync %s after the last change", time.Since(w.began).Round(time.Second), len(w.objects), time.Since(began).Round(time.Millisecond))
}

// services are the addresses of Services, which name servers without one get.
func (w *randomWorld) services(ctx context.Context) (servers model.Servers, err error) {
	var list v1beta1.Bind9InstanceList
	if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		return servers, err
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.Bind9Instance) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range list.Items {
		if _, err := netip.ParseAddr(i.Status.ServiceAddress); err != nil {
			return servers, fmt.Errorf("instance %s has no Service address: %w", i.Name, err)
		}
		if strings.EqualFold(string(i.Spec.Role), "primary") {
			servers.Primaries = append(servers.Primaries, i.Status.ServiceAddress)
		} else {
			servers.Secondaries = append(servers.Secondaries, i.Status.ServiceAddress)
		}
	}
	return servers, nil
}
