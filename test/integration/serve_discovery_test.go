package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/openapi"
)

// While a DNS server answers nobody, reads of what it serves end at the deadline, and discovery answers at once.
func TestServeDiscovery(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "discovery.example", 1, 0)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitInSync("arecord.www", 1)
	f.addSilentServer()

	l := newClients(t)
	ctx, stop := context.WithCancel(t.Context())
	group := "/apis/" + syncv1.SchemeGroupVersion.String()
	asking, discovering := &durations{}, &durations{}
	for range 4 {
		l.repeat(ctx, "get", 0, asking.of(l.get(group+"/namespaces/"+f.namespace+"/syncstatuses/arecord.www")))
	}
	for range 5 {
		for _, path := range []string{group, "/apis/" + syncv1.GroupName, "/apis", "/openapi/v3" + group, "/openapi/v3", "/openapi/v2"} {
			l.record("discovery", discovering.of(l.get(path))())
		}
	}
	if code, said, err := f.directClient()(ctx, "/readyz?verbose", nil); err != nil || code != http.StatusOK || !strings.Contains(said, "[+]informers-synced ok") {
		t.Errorf("the API server is not ready for want of a DNS server: %d %s %v", code, said, err)
	}
	kube.Eventually(t, settleTimeout, func(context.Context) error {
		if asking.count() < 8 {
			return fmt.Errorf("%d answers about the silent server", asking.count())
		}
		return nil
	})
	stop()
	l.requireNoFailure()
	if get, discovery := asking.median(), discovering.median(); discovery > get/2 {
		t.Errorf("discovery took %s, while asking the silent server took %s", discovery, get)
	} else {
		t.Logf("discovery %s, asking the silent server %s", discovery, get)
	}
	t.Run("every reference resolves", func(t *testing.T) { everyReferenceResolves(t, l) })
}

// addSilentServer adds a server that takes no query from anybody, and waits until it is known as one that cannot be reached.
func (f *fixture) addSilentServer() {
	f.Helper()
	generated := &corev1.ConfigMap{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: "dns-primary-0-config"}, generated); err != nil {
		f.Fatal(err)
	}
	options, found := strings.CutPrefix(generated.Data[named.OptionsFile], "options {")
	if !found {
		f.Fatalf("%s has another form:\n%s", named.OptionsFile, generated.Data[named.OptionsFile])
	}
	f.create(
		&corev1.ConfigMap{ObjectMeta: f.meta("silent", nil), Data: map[string]string{named.OptionsFile: "options {\n\tblackhole { any; };" + options}},
		&v1beta1.Bind9Instance{ObjectMeta: f.meta("silent", nil), Spec: v1beta1.Bind9InstanceSpec{
			ClusterRef: "dns", Role: v1beta1.RoleSecondary, Replicas: new(int32(1)), ConfigMapRefs: &v1beta1.ConfigMapRefs{NamedConfOptions: "silent"},
		}})
	kube.Eventually(f, 2*settleTimeout, func(ctx context.Context) error {
		s, err := f.status(ctx, "arecord.www")
		if err != nil {
			return err
		}
		for _, row := range s.Servers {
			if row.Instance == "silent" && row.State == syncv1.StateUnreachable && row.PodPhase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("no silent server: %+v", s.Servers)
	})
}

// durations are how long requests took.
type durations struct {
	mu   sync.Mutex
	took []time.Duration
}

func (d *durations) of(do func() error) func() error {
	return func() error {
		began := time.Now()
		err := do()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.took = append(d.took, time.Since(began))
		return err
	}
}

func (d *durations) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.took)
}

func (d *durations) median() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.took)
	return d.took[len(d.took)/2]
}

// everyReferenceResolves checks the documents that kube-apiserver puts together, ours and all others: one reference that
// leads nowhere breaks clients of other kinds.
func everyReferenceResolves(t *testing.T, l *requestClients) {
	t.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	l.read("/openapi/v3", &index)
	paths := []string{"/openapi/v2"}
	for _, p := range index.Paths {
		paths = append(paths, p.ServerRelativeURL)
	}
	checked, ours := 0, 0
	for _, path := range paths {
		var document map[string]any
		l.read(path, &document)
		for _, ref := range openapi.References(document) {
			checked++
			if strings.Contains(ref, "io.firestoned.bindy.sync.") {
				ours++
			}
			if !openapi.Resolves(document, ref) {
				t.Errorf("%s: %s leads nowhere", path, ref)
			}
		}
	}
	if ours < 40 || checked < 1000 {
		t.Errorf("only %d references, %d of them ours: not the documents that were expected", checked, ours)
	}
	t.Logf("%d references in %d documents, %d of them to ours", checked, len(paths), ours)
}

// read asks for a JSON document.
func (l *requestClients) read(path string, into any) {
	l.Helper()
	reply, err := l.http.Get(l.host + path)
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if err := json.NewDecoder(reply.Body).Decode(into); err != nil {
		l.Fatalf("%s: %s: %v", path, reply.Status, err)
	}
}
