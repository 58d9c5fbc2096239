package registry

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/refresh"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
)

const ns = fakekube.Namespace

// world is everything but kube-apiserver: Verdicts between objects that the test declares and servers that the test runs.
type world struct {
	*fakekube.Cluster
	verdicts *Verdicts
	ctx      context.Context
	registry metrics.KubeRegistry
}

// testOptions are Options, and what a test may replace.
type testOptions struct {
	Options
	readKey tsigkey.ReadFunc
	now     func() time.Time
}

func newWorld(t testing.TB, change ...func(*testOptions)) *world {
	t.Helper()
	return newReplica(fakekube.New(t), change...)
}

// newReplica returns Verdicts between the same objects and servers as others.
func newReplica(c *fakekube.Cluster, change ...func(*testOptions)) *world {
	c.Helper()
	w := &world{Cluster: c, registry: metrics.NewKubeRegistry()}
	o := testOptions{
		Options: Options{Options: refresh.Options{Options: ask.Options{Deadline: 2 * time.Second}, WatchInterval: 50 * time.Millisecond}},
		readKey: c.ReadKey, now: time.Now,
	}
	for _, f := range change {
		f(&o)
	}
	inf := c.NewInformers()
	var err error
	if w.verdicts, err = newVerdicts(inf, c.FindServers, o.readKey, o.now, o.Options); err != nil {
		c.Fatal(err)
	}
	if err := w.verdicts.RegisterMetrics(w.registry.Register, w.registry.CustomRegister); err != nil {
		c.Fatal(err)
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	c.Cleanup(cancel)
	go w.verdicts.Run(w.ctx)
	w.Eventually("the caches are filled", inf.HasSynced)
	return w
}

func keyOf(name string) desired.Key {
	kind, of, _ := subject.ParseName(name)
	return desired.Key{Kind: kind.Kind, Namespace: ns, Name: of}
}

func (w *world) get(name string) *syncv1.SyncStatus {
	w.Helper()
	s, err := w.verdicts.getVerdict(w.ctx, keyOf(name))
	if err != nil {
		w.Fatalf("getting %s: %v", name, err)
	}
	return s
}

func (w *world) tryList(q query) (*syncv1.SyncStatusList, error) {
	q.setDefaults()
	return w.verdicts.listVerdicts(w.ctx, &q)
}

func (w *world) list(q query) *syncv1.SyncStatusList {
	w.Helper()
	l, err := w.tryList(q)
	if err != nil {
		w.Fatalf("listing: %v", err)
	}
	return l
}

func everythingIn(namespace string) *query {
	q := &query{namespace: namespace}
	q.setDefaults()
	return q
}

// metric returns a metric by its name without the common prefix.
func (w *world) metric(name string) float64 {
	w.Helper()
	return w.metrics()[name]
}

// metrics returns the values of all metrics.
func (w *world) metrics() map[string]float64 {
	w.Helper()
	return fakekube.Metrics(w, w.registry)
}

func states(s *syncv1.SyncStatus) string {
	out := string(s.Status.Phase)
	for _, r := range s.Servers {
		out += fmt.Sprintf(" %s=%s", r.Pod, r.State)
	}
	return out
}

func names(l *syncv1.SyncStatusList) []string {
	var out []string
	for _, s := range l.Items {
		out = append(out, s.Name)
	}
	return out
}
