package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/openapi"
)

// While a DNS server answers nobody, reads of what it serves wait for it, and discovery asks no server at all.
func TestServeDiscovery(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "discovery.example", 1, 0)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitInSync("arecord.www", 1)
	f.addSilentServer()

	l := newClients(t)
	group := "/apis/" + syncv1.SchemeGroupVersion.String()
	asking, discovering := &durations{}, &durations{}
	read := asking.of(l.get(group + "/namespaces/" + f.namespace + "/syncstatuses/arecord.www"))
	paths := []string{group, "/apis/" + syncv1.GroupName, "/apis", "/openapi/v3" + group, "/openapi/v3", "/openapi/v2"}
	discover := func(path string) { l.record("discovery", discovering.of(l.get(path))()) }
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		l.repeat(ctx, "get", 0, read)
	}
	for range 5 {
		for _, path := range paths {
			discover(path)
		}
	}
	if code, said, err := f.directClient()(t.Context(), "/readyz?verbose", nil); err != nil || code != http.StatusOK || !strings.Contains(said, "[+]informers-synced ok") {
		t.Errorf("the API server is not ready for want of a DNS server: %d %s %v", code, said, err)
	}
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if asking.count() < 8 {
			return fmt.Errorf("%d answers about the silent server", asking.count())
		}
		return nil
	})
	stop()
	l.running.Wait()
	questions := f.questionCounter()
	before := questions()
	l.record("get", read())
	if after := questions(); after <= before {
		t.Errorf("a read was answered after %d questions to DNS servers, with %d before: they are not counted", after, before)
	}
	// Others may read all namespaces at any moment, and what a read has begun goes on for a while.
	for _, path := range paths {
		kube.Eventually(t, kube.Settle, func(context.Context) error {
			before := questions()
			discover(path)
			if after := questions(); after != before {
				return fmt.Errorf("%d questions went to DNS servers while %s was read", after-before, path)
			}
			return nil
		})
	}
	l.requireNoFailure()
	t.Logf("discovery took %s, reads about the silent server took %s", discovering.median(), asking.median())
	t.Run("every reference resolves", func(t *testing.T) { everyReferenceResolves(t, l) })
}

// askedServer is a line of the API server's metrics that counts questions to a DNS server, answered or not.
var askedServer = regexp.MustCompile(`(?m)^lockstep_syncstatus_(?:probe_duration_seconds_count|probes_unanswered_total|questions_total)\{([^}]*)\} (\S+)$`)

// questionCounter returns a function that returns how many questions the API server has asked the DNS servers of the test's namespace.
func (f *fixture) questionCounter() (count func() int) {
	f.Helper()
	config := rest.CopyConfig(kube.Config(f)) // The API server knows kube-apiserver's users by their certificates.
	config.Host = "https://" + net.JoinHostPort(f.componentPods(f.Context(), "apiserver")[0].Status.PodIP, "8443")
	config.CAFile, config.CAData = "", f.authoritySecret(f.Context()).Data["bundle.crt"]
	config.ServerName = "lockstep-apiserver." + system + ".svc"
	direct, err := rest.HTTPClientFor(config)
	if err != nil {
		f.Fatal(err)
	}
	return func() (n int) {
		f.Helper()
		reply, err := direct.Get(config.Host + "/metrics")
		if err != nil {
			f.Fatal(err)
		}
		defer func() { _ = reply.Body.Close() }()
		page, err := io.ReadAll(reply.Body)
		if err != nil || reply.StatusCode != http.StatusOK {
			f.Fatalf("the API server's metrics: %s %.300s %v", reply.Status, page, err)
		}
		for _, m := range askedServer.FindAllStringSubmatch(string(page), -1) {
			questions, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				f.Fatal(err)
			}
			if strings.Contains(m[1], `namespace="`+f.namespace+`"`) {
				n += int(questions)
			}
		}
		return n
	}
}

// addSilentServer adds a server that takes no query from anybody, and waits until it is known as one that cannot be reached.
func (f *fixture) addSilentServer() {
	f.Helper()
	f.createOptions("silent", "dns-primary-0", "blackhole { any; };", "")
	f.create(&v1beta1.Bind9Instance{ObjectMeta: f.meta("silent", nil), Spec: v1beta1.Bind9InstanceSpec{
		ClusterRef: "dns", Role: v1beta1.RoleSecondary, Replicas: new(int32(1)), ConfigMapRefs: &v1beta1.ConfigMapRefs{NamedConfOptions: "silent"},
	}})
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
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
