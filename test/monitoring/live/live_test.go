package live

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

const (
	// home is where the component puts everything.
	home = "lockstep-system"
	// zoneName is the zone of the test, and victim the server that dies.
	zoneName = "monitoring.example"
	victim   = "dns-secondary-0-0"
)

// propagation is the histogram of the propagation time.
const propagation = "lockstep_change_propagation_seconds"

// world is a Prometheus that follows Lockstep, and a zone on servers of its own.
type world struct {
	*testing.T
	client     client.Client
	namespace  string
	component  component
	prometheus *prometheus
}

// TestMonitoring has a real Prometheus follow Lockstep by the monitors, rules and rights that are shipped, while a record changes, a server
// dies, and comes back. It disturbs nobody, but counts what all zones do, so it runs alone.
func TestMonitoring(t *testing.T) {
	var w *world
	kube.Disruptive(t, func() { w = newWorld(t) })
	began := time.Now()
	w.follow()
	w.everythingIsScraped()
	w.changeIsMeasured()
	w.passesAreCounted()
	w.everyExpressionWorks()
	w.failureIsCounted()
	w.accountMayReadMetricsAlone()
	w.serverDies()
	t.Logf("it took %s with Prometheus", time.Since(began).Round(time.Second))
}

// newWorld starts a primary and a secondary with a zone, and applies what the component has beside monitors and rules.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "monitoring"), component: renderComponent(t)}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"zone": "main"}}
	}
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: meta("dns")}
	cluster.Spec.Primary, cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: new(int32(1))}, &v1beta1.RoleConfig{Replicas: new(int32(1))}
	zone := &v1beta1.DNSZone{ObjectMeta: meta("main")}
	zone.Spec.ZoneName, zone.Spec.ClusterRef = zoneName, "dns"
	zone.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + zoneName + ".", AdminEmail: "hostmaster." + zoneName + ".", Refresh: 3600, Retry: 600, Expire: 604800}
	zone.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "main"}}}}
	record := &v1beta1.ARecord{ObjectMeta: meta("www")}
	record.Spec.Name, record.Spec.IPv4Addresses = "www", []string{"192.0.2.1"}
	for _, o := range []client.Object{cluster, zone, record} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	kube.Kubectl(t, w.component.account, "apply", "-f", "-")
	t.Cleanup(func() { kube.Kubectl(t, w.component.account, "delete", "--ignore-not-found", "-f", "-") })
	kube.WaitReady(t, w.client, w.namespace, kube.Start, "bind9cluster/dns", "dnszone/main")
	w.waitServed("192.0.2.1")
	return w
}

// follow starts Prometheus with what the component ships.
func (w *world) follow() {
	w.Helper()
	dir := w.TempDir()
	tr := translator{client: w.client, dir: dir}
	monitors := slices.Concat(w.component.monitors, []monitor{
		serverMonitor(w.T, w.namespace, "dns-primary-0"), serverMonitor(w.T, w.namespace, "dns-secondary-0"),
	})
	var configs []scrapeConfig
	for _, m := range monitors {
		configs = append(configs, tr.translate(w.T, m)...)
	}
	w.prometheus = startPrometheus(w.T, dir, configs, w.component.rules.hastened(w.T))
}

// everythingIsScraped waits until Prometheus reads the metrics of each pod of Lockstep, and of each server of the test.
func (w *world) everythingIsScraped() {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		want, err := componentPods(ctx, w.client, home)
		if err != nil {
			return err
		}
		want = append(want, "dns-primary-0-0", victim)
		targets, err := w.prometheus.targets(ctx)
		if err != nil {
			return err
		}
		var up []string
		for _, target := range targets {
			if target.Health != "up" {
				return fmt.Errorf("%s is %s: %s", target.Labels["pod"], target.Health, target.LastError)
			}
			up = append(up, target.Labels["pod"])
		}
		slices.Sort(want)
		slices.Sort(up)
		if !slices.Equal(want, up) {
			return fmt.Errorf("scraped are %q, want %q", up, want)
		}
		return nil
	})
}

// changeIsMeasured changes the record, and sees one measurement of the time that it took.
func (w *world) changeIsMeasured() {
	w.Helper()
	w.waitQuiet()
	before, sum := w.measurements()
	began := time.Now()
	w.setAddress("192.0.2.2")
	w.waitServed("192.0.2.2")
	took := time.Since(began)
	w.waitMeasured(before + 1)
	_, after := w.measurements()
	if measured := after - sum; measured <= 0 || measured > took.Seconds()+1 {
		w.Errorf("the change took %.3f s by the metric, and at most %s until both servers were seen to serve it", measured, took)
	}
	w.Logf("the change was served everywhere within %.3f s", after-sum)
}

// passesAreCounted has passes over zones that change something, that fail, and that find nothing to do. Each is counted by its outcome, and so
// are its UPDATEs; and what a cache has heard has a time.
func (w *world) passesAreCounted() {
	w.Helper()
	const passes = `sum(lockstep_zone_passes_total{outcome=%q}) or vector(0)`
	nowhere := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "nowhere"}}
	nowhere.Spec.ZoneName, nowhere.Spec.ClusterRef = "nowhere.example", "nowhere"
	nowhere.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.nowhere.example.", AdminEmail: "hostmaster.nowhere.example.", Refresh: 3600, Retry: 600, Expire: 604800}
	for _, c := range []struct {
		expr string
		act  func() error
	}{
		{fmt.Sprintf(passes, "changed"), func() error { w.setAddress("192.0.2.4"); return nil }},
		{`sum(lockstep_rrset_changes_total{change="update"})`, func() error { w.setAddress("192.0.2.2"); return nil }},
		{`sum(lockstep_dns_updates_total{rcode="NOERROR"})`, func() error { w.setAddress("192.0.2.4"); return nil }},
		{`max(lockstep_cache_last_event_timestamp_seconds)`, func() error { w.setAddress("192.0.2.2"); return nil }},
		{fmt.Sprintf(passes, "failed"), func() error { return w.client.Create(w.Context(), nowhere) }},
		{fmt.Sprintf(passes, "unchanged"), func() error {
			kube.Kubectl(w, "", "--namespace", w.namespace, "annotate", "bind9instance", "dns-primary-0", "test.lockstep/look=again")
			return nil
		}},
	} {
		before, err := w.prometheus.value(w.Context(), c.expr)
		if err == nil {
			err = c.act()
		}
		if err != nil {
			w.Fatal(err)
		}
		kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
			n, err := w.prometheus.value(ctx, c.expr)
			if err == nil && n <= before {
				err = fmt.Errorf("%s is %v, as before", c.expr, n)
			}
			return err
		})
	}
	if n, err := w.prometheus.value(w.Context(), "sum(lockstep_cache_watches_total)"); n == 0 || err != nil {
		w.Errorf("%v watches are counted, %v", n, err)
	}
	if err := w.client.Delete(w.Context(), nowhere); err != nil {
		w.Fatal(err)
	}
	w.waitServed("192.0.2.2")
}

// waitQuiet waits until no change is on its way.
func (w *world) waitQuiet() {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		age, err := w.prometheus.value(ctx, "max(lockstep_oldest_unsynced_change_age_seconds)")
		if err == nil && age != 0 {
			err = fmt.Errorf("a change has been on its way for %.1f s", age)
		}
		return err
	})
}

// measurements returns how many changes have been measured, and the sum of their times in seconds.
func (w *world) measurements() (count, sum float64) {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) (err error) {
		if count, err = w.prometheus.value(ctx, "sum("+propagation+"_count)"); err == nil {
			sum, err = w.prometheus.value(ctx, "sum("+propagation+"_sum)")
		}
		return err
	})
	return count, sum
}

func (w *world) waitMeasured(want float64) {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		count, err := w.prometheus.value(ctx, "sum("+propagation+"_count)")
		if err == nil && count < want {
			err = fmt.Errorf("%v changes are measured, want %v", count, want)
		}
		if count > want {
			w.Fatalf("%v changes are measured, want %v", count, want)
		}
		return err
	})
}

// everyExpressionWorks evaluates each rule and each panel. All panels have data but those that are empty while all is well.
func (w *world) everyExpressionWorks() {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		broken, err := w.prometheus.ruleErrors(ctx)
		if len(broken) > 0 {
			w.Fatalf("rules that cannot be evaluated: %q", broken)
		}
		return err
	})
	panels := readDashboard(w.T)
	for _, panel := range panels {
		for _, target := range panel.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
			kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
				samples, err := w.prometheus.query(ctx, expr)
				switch {
				case err != nil:
					w.Fatalf("panel %q: %v", panel.Title, err)
				case len(samples) == 0 && panel.Description == "":
					return fmt.Errorf("panel %q has no data: %s", panel.Title, expr)
				}
				return nil
			})
		}
	}
	w.Logf("%d panels have data, or may have none", len(panels))
}

// failureIsCounted declares a record that no zone selects, and removes it.
func (w *world) failureIsCounted() {
	w.Helper()
	failed := func(ctx context.Context) (float64, error) {
		return w.prometheus.value(ctx, `sum(lockstep_objects_failed{kind="ARecord",reason="NotSelected"}) or vector(0)`)
	}
	before, err := failed(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "nowhere"}}
	record.Spec.Name, record.Spec.IPv4Addresses = "nowhere", []string{"192.0.2.1"}
	await := func(want float64) {
		kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
			n, err := failed(ctx)
			if err == nil && n != want {
				err = fmt.Errorf("%v records are counted that no zone selects, want %v", n, want)
			}
			return err
		})
	}
	if err := w.client.Create(w.Context(), record); err != nil {
		w.Fatal(err)
	}
	await(before + 1)
	if err := w.client.Delete(w.Context(), record); err != nil {
		w.Fatal(err)
	}
	await(before)
}

// accountMayReadMetricsAlone tries what the component's token can be used for.
func (w *world) accountMayReadMetricsAlone() {
	w.Helper()
	account := "system:serviceaccount:" + home + ":lockstep-metrics-reader"
	review := func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		spec.User, spec.Groups = account, []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"}
		r := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := w.client.Create(w.Context(), r); err != nil {
			w.Fatal(err)
		}
		return r.Status.Allowed
	}
	if !review(authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}}) {
		w.Error("the account may not get /metrics")
	}
	for _, what := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "pods"}, {Verb: "get", Resource: "secrets", Namespace: home}, {Verb: "list", Group: "bindy.firestoned.io", Resource: "dnszones"},
		{Verb: "list", Group: "sync.bindy.firestoned.io", Resource: "syncstatuses"}, {Verb: "get", Resource: "nodes", Subresource: "metrics"},
	} {
		if review(authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &what}) {
			w.Errorf("the account may %s %s", what.Verb, what.Resource)
		}
	}
	config := rest.AnonymousClientConfig(kube.Config(w))
	config.BearerToken = w.token()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		w.Fatal(err)
	}
	response, err := transport.Get(config.Host + "/api/v1/namespaces")
	if err != nil {
		w.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		w.Errorf("kube-apiserver answers the account's token with %s, want 403", response.Status)
	}
}

func (w *world) token() string {
	w.Helper()
	secret := &corev1.Secret{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: home, Name: "lockstep-metrics-reader-token"}, secret); err != nil {
		w.Fatal(err)
	}
	return string(secret.Data["token"])
}

// serverDies stops a secondary's named, sees the alert, a change that waits for the server, and both end when named goes on.
func (w *world) serverDies() {
	w.Helper()
	want := w.component.rules.alert(w.T, "LockstepServerDown")
	if active, err := w.prometheus.alerts(w.Context(), want.Alert); err != nil || len(active) > 0 {
		w.Fatalf("before the server dies, the alerts are %v, %v", active, err)
	}
	w.waitQuiet()
	count, sum := w.measurements()
	resume := w.stopNamed(victim)
	stopped := time.Now()
	w.waitAlert(want)
	w.Logf("the alert fires after %s, with a wait of %s", time.Since(stopped).Round(100*time.Millisecond), want.For)

	changed := time.Now()
	w.setAddress("192.0.2.3")
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		age, err := w.prometheus.value(ctx, "max(lockstep_oldest_unsynced_change_age_seconds)")
		if latest := time.Since(changed).Seconds(); err == nil && age > latest {
			w.Fatalf("the oldest change is %.1f s old, and was made %.1f s ago", age, latest)
		}
		if err == nil && age < 3 {
			err = fmt.Errorf("the oldest change is %.1f s old", age)
		}
		return err
	})
	if now, _ := w.measurements(); now != count {
		w.Errorf("%v changes are measured, while a server that has not the last one is down", now-count)
	}
	down := time.Since(changed)
	resume()
	resumed := time.Now()
	w.waitServed("192.0.2.3")
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		active, err := w.prometheus.alerts(ctx, want.Alert)
		if err == nil && len(active) > 0 {
			err = fmt.Errorf("the alert is still active: %v", active)
		}
		return err
	})
	w.Logf("the alert has ended %s after named goes on", time.Since(resumed).Round(100*time.Millisecond))
	w.waitQuiet()
	w.waitMeasured(count + 1)
	if _, now := w.measurements(); now-sum < down.Seconds()-1 {
		w.Errorf("the change took %.1f s by the metric, and the server was down for %s of it", now-sum, down)
	}
}

// waitAlert waits until an alert fires for the server that died, and for no other, with what its rule says.
func (w *world) waitAlert(want rule) {
	w.Helper()
	var active []alert
	kube.Eventually(w, kube.Settle, func(ctx context.Context) (err error) {
		if active, err = w.prometheus.alerts(ctx, want.Alert); err != nil {
			return err
		}
		if len(active) == 0 || active[0].State != "firing" {
			return fmt.Errorf("alerts: %v", active)
		}
		return nil
	})
	if len(active) != 1 {
		w.Errorf("%d alerts fire, want one: %v", len(active), active)
	}
	labels := maps.Clone(want.Labels)
	labels["namespace"], labels["pod"] = w.namespace, victim
	for name, value := range labels {
		if active[0].Labels[name] != value {
			w.Errorf("the alert's label %s is %q, want %q", name, active[0].Labels[name], value)
		}
	}
	if words := w.namespace + "/" + victim; !strings.Contains(active[0].Annotations["summary"], words) {
		w.Errorf("the summary is %q, want %q in it", active[0].Annotations["summary"], words)
	}
	w.isInRunbook(active[0].Annotations["runbook_url"])
}

// isInRunbook follows a link to a heading of the repository.
func (w *world) isInRunbook(link string) {
	w.Helper()
	path, anchor, _ := strings.Cut(strings.TrimPrefix(link, "https://github.com/lockstep-dns/lockstep/blob/main/"), "#")
	page, err := os.ReadFile(filepath.Join(kube.Root(w), filepath.Clean(path)))
	if err != nil {
		w.Fatalf("the runbook %q: %v", link, err)
	}
	if !regexp.MustCompile(`(?mi)^## ` + regexp.QuoteMeta(anchor) + `$`).Match(page) {
		w.Errorf("the runbook %q has no such heading", link)
	}
}

// stopNamed stops the processes of a pod's named until resume is called.
func (w *world) stopNamed(name string) (resume func()) {
	w.Helper()
	pod := &corev1.Pod{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, pod); err != nil {
		w.Fatal(err)
	}
	id, err := kube.ContainerID(pod, "named")
	if err != nil {
		w.Fatal(err)
	}
	pids, err := kube.ProcessesOf(id)
	if err != nil {
		w.Fatal(err)
	}
	resume = func() {
		if err := kube.Signal(pids, syscall.SIGCONT); err != nil {
			w.Error(err)
		}
	}
	w.Cleanup(resume)
	if err := kube.Signal(pids, syscall.SIGSTOP); err != nil {
		w.Fatal(err)
	}
	return resume
}

func (w *world) setAddress(address string) {
	w.Helper()
	kube.Kubectl(w, "", "--namespace", w.namespace, "patch", "arecord", "www", "--type=merge", "-p", `{"spec":{"ipv4Addresses":["`+address+`"]}}`)
}

// waitServed waits until both servers answer with an address.
func (w *world) waitServed(address string) {
	w.Helper()
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		servers, err := kube.Servers(ctx, w.client, w.namespace)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			reply, err := kube.Query(server, "www."+zoneName, dns.TypeA, time.Second)
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
			if len(reply.Answer) != 1 || reply.Answer[0].(*dns.A).A.String() != address {
				return fmt.Errorf("%s answers %v, want %s", pod, reply.Answer, address)
			}
		}
		return nil
	})
}
