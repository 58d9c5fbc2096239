package integration

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// status reads one SyncStatus.
func (f *fixture) status(ctx context.Context, name string) (*syncv1.SyncStatus, error) {
	s := &syncv1.SyncStatus{}
	return s, f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, s)
}

// waitInSync waits until a SyncStatus is InSync on so many servers.
func (f *fixture) waitInSync(name string, servers int) *syncv1.SyncStatus {
	f.Helper()
	var last *syncv1.SyncStatus
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s, err := f.status(ctx, name)
		if err != nil {
			return err
		}
		if last = s; !s.Status.InSync || len(s.Servers) != servers {
			return fmt.Errorf("%s is %s on %d servers: %+v", name, s.Status.Phase, len(s.Servers), s.Status)
		}
		return nil
	})
	return last
}

// kubectl runs kubectl in the fixture's namespace.
func (f *fixture) kubectl(args ...string) string {
	f.Helper()
	return kube.Kubectl(f, "", append([]string{"-n", f.namespace}, args...)...)
}

// A person and a pipeline each ask in their own way and get the same answer.
func TestReadStatus(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "read.example", 1, 1)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	s := f.waitInSync("arecord.www", 2)
	for i, role := range []string{"Primary", "Secondary"} {
		row := s.Servers[i]
		if row.Role != role || row.State != syncv1.StateInSync || row.Serial == nil || row.RTT == nil || !row.Authoritative || !row.PodReady {
			t.Errorf("row %d: %+v, want a %s in sync with its evidence", i, row, role)
		}
	}
	if s.Zone != "read.example" || s.ObjectRef.Kind != "ARecord" || s.ResourceVersion == "" || s.ObservedAt == nil {
		t.Errorf("incomplete: %+v", s)
	}

	t.Run("columns", func(t *testing.T) {
		for args, want := range map[string]string{
			"get syncstatus":               "NAME ZONE PHASE SERVERS SERIAL LAG REASON OBSERVED",
			"get sync arecord.www -o wide": "NAME ZONE PHASE SERVERS SERIAL LAG REASON OBSERVED KIND RTT MESSAGE",
			"get dnszones.sync.bindy.firestoned.io main --subresource=syncstatus": "NAME ZONE PHASE SERVERS SERIAL LAG REASON OBSERVED",
			"get arecords.sync.bindy.firestoned.io www --subresource=syncstatus":  "NAME ZONE PHASE SERVERS SERIAL LAG REASON OBSERVED",
		} {
			lines := strings.Split(strings.TrimSpace(f.kubectl(strings.Fields(args)...)), "\n")
			if got := strings.Join(strings.Fields(lines[0]), " "); got != want {
				t.Errorf("kubectl %s: %s, want %s", args, got, want)
			}
			for _, line := range lines[1:] {
				if !strings.Contains(line, "InSync") {
					t.Errorf("kubectl %s: %s", args, line)
				}
			}
		}
	})
	t.Run("explain", func(t *testing.T) {
		out := kube.Kubectl(t, "", "explain", "syncstatus.servers")
		for _, want := range []string{"Divergent", "serialLag", "rtt", "authoritative"} {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl explain does not mention %s:\n%s", want, out)
			}
		}
	})
	t.Run("selectors", func(t *testing.T) {
		for args, want := range map[string]string{
			"-l zone=main": "syncstatus.sync.bindy.firestoned.io/arecord.www",
			"--field-selector metadata.name=arecord.www": "syncstatus.sync.bindy.firestoned.io/arecord.www",
			"--field-selector kind=DNSZone":              "syncstatus.sync.bindy.firestoned.io/dnszone.main",
			"--field-selector status.inSync=false":       "",
		} {
			out := strings.TrimSpace(f.kubectl(append([]string{"get", "syncstatus", "-o", "name"}, strings.Fields(args)...)...))
			if out != want {
				t.Errorf("kubectl get syncstatus %s: %q, want %q", args, out, want)
			}
		}
	})
	t.Run("read-only", func(t *testing.T) {
		out, err := kube.TryKubectl(t, "", "-n", f.namespace, "delete", "syncstatus", "arecord.www")
		if err == nil || !strings.Contains(out, "read-only") {
			t.Errorf("kubectl delete syncstatus: %v %s", err, out)
		}
	})
	t.Run("wait by jsonpath", func(*testing.T) {
		f.kubectl("wait", "--for=jsonpath={.status.phase}=InSync", "syncstatus/dnszone.main", "--timeout=120s")
	})
	f.testAPI()
	t.Run("gone with the object", func(t *testing.T) {
		f.kubectl("delete", "arecord", "www")
		f.kubectl("wait", "--for=delete", "syncstatus/arecord.www", "--timeout=120s")
		if _, err := f.status(t.Context(), "arecord.www"); !apierrors.IsNotFound(err) {
			t.Errorf("after the record is deleted: %v, want not found", err)
		}
	})
}

// Who has just written an object never reads the version before it.
func TestReadYourWrites(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "fresh.example", 1, 1)
	record := f.aRecord("www", "www", "192.0.2.1")
	f.create(record)
	f.waitInSync("arecord.www", 2)
	for i := range 20 {
		change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{fmt.Sprintf("192.0.2.%d", 100+i)} })
		s, err := f.status(t.Context(), "arecord.www")
		if err != nil {
			t.Fatal(err)
		}
		if s.ObjectRef.Generation < record.Generation || s.RRsets[0].Rdata[0] != record.Spec.IPv4Addresses[0] {
			t.Fatalf("read after generation %d was written: %d with %v", record.Generation, s.ObjectRef.Generation, s.RRsets)
		}
		began := time.Now()
		s = f.waitInSync("arecord.www", 2)
		if s.ObjectRef.Generation != record.Generation {
			t.Fatalf("in sync with generation %d, want %d", s.ObjectRef.Generation, record.Generation)
		}
		t.Logf("in sync %s after the read", time.Since(began).Round(time.Millisecond))
	}
}

// A watch shows each change of a record arrive, without a false alarm on the way, and a server that stops. That a record is on its way may
// pass between two looks at the servers.
func TestReadWatch(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "watch.example", 1, 1)
	record := f.aRecord("www", "www", "192.0.2.1")
	f.create(record)
	f.waitInSync("arecord.www", 2)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	// By selector, as kubectl swallows the first event of a watch by name: what changes before the watch has begun is lost.
	cmd := exec.CommandContext(ctx, "kubectl", "-n", f.namespace, "get", "syncstatus", "--field-selector", "metadata.name=arecord.www", "-w", "--no-headers",
		"-o", "custom-columns=GENERATION:.objectRef.generation,PHASE:.status.phase,SERVERS:.summary.inSync,STATES:.servers[*].state")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
		close(lines)
	}()
	// await reads lines until one of a generation and a phase, judges each of them, and reports whether the record was on its way meanwhile.
	last := int64(0)
	await := func(generation int64, phase syncv1.Phase, bad ...syncv1.Phase) (propagating bool) {
		t.Helper()
		timeout := time.After(kube.Settle.Duration())
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("kubectl ended before %d %s", generation, phase)
				}
				t.Log(line)
				e, err := parseWatchLine(line)
				if err != nil {
					t.Fatal(err)
				}
				if e.generation < last || e.generation > generation {
					t.Errorf("%q after generation %d, on the way to %d", line, last, generation)
				}
				if e.phase == syncv1.PhaseInSync && e.inSync != 2 {
					t.Errorf("%q contradicts itself", line)
				}
				silent := strings.Contains(e.states, string(syncv1.StateUnreachable)) // A busy server may not answer in time.
				if slices.Contains(bad, e.phase) && !(silent && e.phase == syncv1.PhaseOutOfSync) {
					t.Errorf("a false alarm: %q on the way to %d %s", line, generation, phase)
				}
				last, propagating = e.generation, propagating || e.phase == syncv1.PhasePropagating
				if e.generation == generation && e.phase == phase {
					return propagating
				}
			case <-timeout:
				t.Fatalf("never saw %d %s", generation, phase)
			}
		}
	}
	await(1, syncv1.PhaseInSync, syncv1.PhaseFailed)
	left := 0
	for i := range 10 {
		change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{fmt.Sprintf("192.0.2.%d", 100+i)} })
		if await(record.Generation, syncv1.PhaseInSync, syncv1.PhaseOutOfSync, syncv1.PhaseFailed) {
			left++
		}
	}
	t.Logf("the record was seen on its way with %d of 10 changes", left)
	up := f.keepStopping("dns-secondary-0-0")
	await(record.Generation, syncv1.PhaseOutOfSync, syncv1.PhaseFailed)
	up()
	await(record.Generation, syncv1.PhaseInSync, syncv1.PhaseFailed)
	cancel()
	_ = cmd.Wait() // killed by the context
}

// watchLine is a line of the watch of TestReadWatch.
type watchLine struct {
	generation int64
	phase      syncv1.Phase
	inSync     int
	states     string
}

func parseWatchLine(line string) (l watchLine, err error) {
	_, err = fmt.Sscan(line, &l.generation, &l.phase, &l.inSync, &l.states)
	if err != nil {
		err = fmt.Errorf("%q is not a line of the watch: %w", line, err)
	}
	return l, err
}

// keepStopping stops the server of a pod as often as the kubelet starts it, with longer pauses each time, until the returned
// function is called.
func (f *fixture) keepStopping(pod string) (end func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = kube.TryKubectl(f, "", "-n", f.namespace, "exec", pod, "-c", "bindcar", "--", "/lockstep", "rndc", "stop")
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// A DNSEndpoint publishes in a zone of another namespace that lets it in, and each side learns of the other what it has
// to know: names and servers.
func TestReadEndpoints(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "endpoints.example", 1, 1)
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}
	shop := kube.Namespace(t, "it-shop")
	change(f, zone, func(z *v1beta1.DNSZone) {
		z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: shop}
	})
	e := f.singleEndpoint("storefront", "www.endpoints.example", "A", "192.0.2.1")
	e.Namespace = shop
	e.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: f.namespace} // Both sides have to consent.
	f.create(e)
	in := func(args ...string) string {
		t.Helper()
		return kube.Kubectl(t, "", append([]string{"-n", shop}, args...)...)
	}
	in("wait", "--for=condition=Propagated", "syncstatus/dnsendpoint.storefront", "--timeout=120s")
	f.waitServed("www.endpoints.example", "A", "192.0.2.1")
	out := in("get", "dnsendpoints.sync.bindy.firestoned.io", "storefront", "--subresource=syncstatus", "--no-headers", "-o", "wide")
	for _, want := range []string{"dnsendpoint.storefront", "endpoints.example", "InSync", "2/2", "DNSEndpoint"} {
		if !strings.Contains(out, want) {
			t.Errorf("the row lacks %q: %s", want, out)
		}
	}
	if s := f.waitInSync("dnszone.main", 2); s.Summary.Records != 3 || s.Servers[0].Records.Undeclared != 0 {
		t.Errorf("the zone counts %+v and %+v, want what the endpoint declares among it", s.Summary, s.Servers[0].Records)
	}

	// Reads your own writes, as for records.
	change(f, e, func(e *v1alpha1.DNSEndpoint) { e.Spec.Endpoints[0].Targets = []string{"192.0.2.2"} })
	in("wait", "--for=condition=Propagated", "syncstatus/dnsendpoint.storefront", "--timeout=120s")
	if addresses, err := f.servers(t.Context()); err != nil {
		t.Error(err)
	} else {
		for pod, server := range addresses {
			if got, err := queryRdata(server, "www.endpoints.example.", dns.TypeA); err != nil || len(got) != 1 || got[0] != "192.0.2.2" {
				t.Errorf("in sync, and %s answers %v (%v)", pod, got, err)
			}
		}
	}

	t.Run("by persona", func(t *testing.T) {
		f.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "viewer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "keeper"}},
		})
		var list string
		kube.Eventually(t, kube.Settle, func(context.Context) (err error) {
			list, err = kube.TryKubectl(t, "", "--as", "keeper", "-n", shop, "get", "syncstatus", "-o", "yaml")
			return err
		})
		if !strings.Contains(list, "dnsendpoint.storefront") || regexp.MustCompile(`dnszone|\bmain\b`).MatchString(list) {
			t.Errorf("a reader of the endpoint's namespace sees:\n%s", list)
		}
		if out, err := kube.TryKubectl(t, "", "--as", "keeper", "-n", f.namespace, "get", "syncstatus"); err == nil || !strings.Contains(out, "orbidden") {
			t.Errorf("a reader of the endpoint's namespace may read that of the zone: %v %s", err, out)
		}
		if all := f.kubectl("get", "syncstatus", "-o", "yaml"); strings.Contains(all, "storefront") || strings.Contains(all, shop) {
			t.Errorf("the zone's namespace sees the endpoint's object:\n%s", all)
		}
	})
	t.Run("no zone", func(t *testing.T) {
		stray := f.singleEndpoint("stray", "www.nowhere.example", "A", "192.0.2.1")
		f.create(stray)
		s, err := f.status(t.Context(), "dnsendpoint.stray")
		if err != nil || s.Status.FailureReason != "NoMatchingZone" || !strings.Contains(s.Status.FailureMessage, "www.nowhere.example") {
			t.Errorf("%v %+v, want NoMatchingZone", err, s.Status)
		}
	})
	t.Run("gone with the object", func(*testing.T) {
		in("delete", "dnsendpoint", "storefront")
		in("wait", "--for=delete", "syncstatus/dnsendpoint.storefront", "--timeout=120s")
		f.waitServed("www.endpoints.example", "A")
	})
}
