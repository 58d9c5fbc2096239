package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1alpha1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A release takes over what kubectl has installed, is upgraded from the last commit, rolled back, and uninstalled, while a zone is served
// and read all the time. Uninstalling leaves zones and servers, unless it is told to remove the definitions.
func TestRelease(t *testing.T) {
	kube.Disruptive(t, nil)
	c := kube.Client(t)
	requireAlone(t, c)
	defer restore(t)

	former := formerChart(t)
	removeNewer(t, former)
	helm(t, append([]string{"install", "lockstep", former, "-n", system, "--take-ownership", "--force-conflicts", "--wait", "--timeout", patience}, restart("1")...)...)
	requireWorking(t, c)
	team := kube.Namespace(t, "it")
	helm(t, "install", "zone", "testdata/zone", "-n", team, "--wait", "--timeout", patience)
	served := askAll(t, team, "www.release.example.", "192.0.2.1")
	if err := served(t.Context()); err != nil {
		t.Errorf("Helm has not waited until the record is served: %v", err)
	}

	// A release with another image of the sidecars replaces the servers, one at a time.
	images, asked := imagesOf(t, c, team), served
	if imageFlags(t, former) != imageFlags(t, chartPath) {
		asked = resolve(t, team, "www.release.example.", "192.0.2.1")
	}
	stop := keepAsking(t,
		stream{"DNS", 20 * time.Millisecond, asked},
		stream{"SyncStatus", 250 * time.Millisecond, func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: team, Name: "arecord.www"}, &syncv1alpha1.SyncStatus{})
		}},
		stream{"admission", 250 * time.Millisecond, func(ctx context.Context) error { return admission(ctx, c, team) }})
	defer stop()
	// kubectl still counts as an owner of what it has applied: a change of that is a conflict, which has to be forced.
	helm(t, append([]string{"upgrade", "lockstep", chartPath, "-n", system, "--set", "controller.resources.requests.cpu=51m", "--force-conflicts", "--wait", "--timeout", patience},
		restart("2")...)...)
	requireRequest(t, "51m")
	requireDefinitions(t)
	helm(t, "rollback", "lockstep", "1", "-n", system, "--force-conflicts", "--wait", "--timeout", patience)
	kube.Eventually(t, kube.Roll, func(ctx context.Context) error {
		if now := imagesOf(t, c, team); now != images {
			return fmt.Errorf("the servers run %s, want %s", now, images)
		}
		return served(ctx)
	})
	stop()
	requireRequest(t, "50m")
	if history := helm(t, "history", "lockstep", "-n", system, "-o", "json"); !strings.Contains(history, "Rollback to 1") {
		t.Errorf("the history: %s", history)
	}
	helm(t, "upgrade", "zone", "testdata/zone", "-n", team, "--set", "address=192.0.2.2", "--wait", "--timeout", patience)
	served = askAll(t, team, "www.release.example.", "192.0.2.2")
	if err := served(t.Context()); err != nil {
		t.Errorf("Helm has not waited until the change is served: %v", err)
	}

	testKept(t, c, team, served)
	testRemoved(t, c, team)
}

// testKept uninstalls the release: definitions, objects and servers stay, and nothing that has gone is in the way of a deletion. A new release takes them over.
func testKept(t *testing.T, c client.Client, team string, served func(context.Context) error) {
	stop := keepAsking(t, stream{"DNS without Lockstep", 20 * time.Millisecond, served})
	defer stop()
	helm(t, "uninstall", "lockstep", "-n", system, "--wait", "--timeout", patience)
	endpoint := client.ObjectKey{Namespace: team, Name: "www"}
	record := &v1beta1.ARecord{}
	if err := c.Get(t.Context(), endpoint, record); err != nil {
		t.Fatalf("after helm uninstall: %v", err)
	}
	if left := namesOf(t, "deployments,services,validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies", system); left != "" {
		t.Errorf("helm uninstall leaves %s", left)
	}
	extra := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "extra"}}
	extra.Spec.Name, extra.Spec.IPv4Addresses = "extra", []string{"192.0.2.9"}
	if err := errors.Join(c.Create(t.Context(), extra), c.Delete(t.Context(), extra)); err != nil {
		t.Errorf("without Lockstep: %v", err)
	}
	if out, err := kube.TryKubectl(t, "", "get", "apiservice", "v1alpha1.sync.bindy.firestoned.io"); err == nil {
		t.Errorf("helm uninstall leaves the APIService: %s", out)
	}
	stop()

	helm(t, "install", "lockstep", chartPath, "-n", system, "--set", "crds.keep=false", "--wait", "--timeout", patience)
	requireWorking(t, c)
	kube.WaitReady(t, c, team, kube.Answer, "bind9cluster/dns", "dnszone/main")
	kube.Eventually(t, kube.Roll, served)
}

// testRemoved uninstalls a release that does not keep definitions, with a zone present: nothing waits for a finalizer, and with the
// namespace everything is gone. Into an empty cluster, and another namespace, it installs in one run.
func testRemoved(t *testing.T, c client.Client, team string) {
	helm(t, "uninstall", "lockstep", "-n", system, "--wait", "--timeout", patience)
	kube.Eventually(t, kube.Answer, func(context.Context) error {
		if left := namesOf(t, "customresourcedefinitions", ""); left != "" {
			return fmt.Errorf("left behind: %s", left)
		}
		return nil
	})
	kube.Eventually(t, kube.Answer, func(ctx context.Context) error {
		if servers, err := kube.Servers(ctx, c, team); err == nil {
			return fmt.Errorf("servers are left: %v", servers)
		}
		return nil
	})
	kube.Kubectl(t, "", "delete", "namespace", system, "--timeout=120s")
	kube.Eventually(t, kube.Answer, func(context.Context) error {
		if left := namesOf(t, "clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations", ""); left != "" {
			return fmt.Errorf("left behind: %s", left)
		}
		return nil
	})

	helm(t, "install", "lockstep", chartPath, "-n", "team-dns", "--create-namespace", "--set", "crds.keep=false", "--wait", "--timeout", patience)
	requireWorking(t, c)
	helm(t, "uninstall", "lockstep", "-n", "team-dns", "--wait", "--timeout", patience)
	kube.Kubectl(t, "", "delete", "namespace", "team-dns", "--timeout=120s")
}

// imageFlags returns the flags of a chart that say which images servers run.
func imageFlags(t *testing.T, chart string) string {
	t.Helper()
	var flags []string
	for _, line := range strings.Split(helm(t, "template", "lockstep", chart, "-n", system), "\n") {
		if strings.Contains(line, "image=") {
			flags = append(flags, strings.TrimSpace(line))
		}
	}
	return strings.Join(flags, " ")
}

// imagesOf returns the images of all containers of the servers in a namespace.
func imagesOf(t *testing.T, c client.Client, namespace string) string {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			images = append(images, pod.Name+" "+container.Image)
		}
	}
	slices.Sort(images)
	return strings.Join(images, ", ")
}

// requireAlone fails the test before it does harm: it takes all zones of the cluster away.
func requireAlone(t *testing.T, c client.Client) {
	t.Helper()
	var zones v1beta1.DNSZoneList
	if err := c.List(t.Context(), &zones); err != nil {
		t.Fatal(err)
	}
	for _, zone := range zones.Items {
		if zone.DeletionTimestamp == nil && !strings.HasPrefix(zone.Namespace, "it-") {
			t.Fatalf("DNSZone %s/%s is not of a test: this cluster is in use, and the test would uninstall Lockstep", zone.Namespace, zone.Name)
		}
	}
}

// restore removes what a failed test has left, and brings the usual installation back.
func restore(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{system, "team-dns"} {
		_, _ = tryHelm(context.WithoutCancel(t.Context()), "uninstall", "lockstep", "-n", namespace, "--ignore-not-found", "--wait", "--timeout", "60s")
	}
	kube.Kubectl(t, "", "delete", "namespace", system, "team-dns", "--ignore-not-found", "--timeout=120s")
	if namesOf(t, "customresourcedefinitions", "") != "" {
		_ = exec.Command("bash", "-c", documentedRemedy(t)).Run() // If definitions are being deleted, nobody else releases their objects.
	}
	kube.Eventually(t, kube.Answer, func(context.Context) error {
		deleted := kube.Kubectl(t, "", "get", "customresourcedefinitions", "-o", `jsonpath={range .items[*]}{.metadata.deletionTimestamp}{end}`)
		if deleted != "" {
			return errors.New("definitions are still being deleted")
		}
		return nil
	})
	kube.Reinstall(t)
}

// documentedRemedy is the command of docs/uninstall.md that removes finalizers.
func documentedRemedy(t *testing.T) string {
	t.Helper()
	for i, block := range strings.Split(readFile(t, "docs/uninstall.md"), "```") {
		if i%2 == 1 && strings.Contains(block, "kubectl patch") {
			return strings.TrimPrefix(block, "sh\n")
		}
	}
	t.Fatal("docs/uninstall.md has no command that patches")
	return ""
}

// admission returns an error unless the webhook takes a good record and refuses a bad one.
func admission(ctx context.Context, c client.Client, namespace string) error {
	record := func(address string) error {
		r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe", Labels: map[string]string{"zone": "main"}}}
		r.Spec.Name, r.Spec.IPv4Addresses = "probe", []string{address}
		return c.Create(ctx, r, client.DryRunAll)
	}
	if err := record("192.0.2.3"); err != nil {
		return fmt.Errorf("a good record: %w", err)
	}
	if err := record("192.0.2.300"); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a bad record: %w", err)
	}
	return nil
}

// requireWorking fails the test if Helm came back before the webhook serves, or long before all can be reached: nodes learn of the endpoints
// of a Service, and kube-apiserver of an APIService, by themselves, and no readiness that Helm knows includes that.
func requireWorking(t *testing.T, c client.Client) {
	t.Helper()
	began := time.Now()
	first := map[string]error{}
	kube.Eventually(t, kube.Answer, func(ctx context.Context) error {
		works := map[string]error{
			"admission":  admission(ctx, c, "default"),
			"SyncStatus": c.List(ctx, &syncv1alpha1.SyncStatusList{}, client.InNamespace("default")),
		}
		if len(first) == 0 {
			first = works
		}
		return errors.Join(works["admission"], works["SyncStatus"])
	})
	took := time.Since(began).Round(time.Millisecond)
	if err := first["admission"]; err != nil && !strings.Contains(err.Error(), "connection refused") { // Which is a Service without endpoints.
		t.Errorf("helm --wait came back before admission works: %v", err)
	}
	t.Logf("all works %s after helm --wait; at first: %v", took, errors.Join(first["admission"], first["SyncStatus"]))
	if took > 10*time.Second {
		t.Errorf("all works only %s after helm --wait", took)
	}
}

// requireRequest fails the test unless the controller requests as much of a processor as a release says.
func requireRequest(t *testing.T, want string) {
	t.Helper()
	if got := kube.Kubectl(t, "", "get", "deployment", "lockstep-controller", "-n", system, "-o", "jsonpath={.spec.template.spec.containers[0].resources.requests.cpu}"); got != want {
		t.Errorf("the controller requests %s, want %s", got, want)
	}
}

// requireDefinitions fails the test unless the definitions in the cluster have the schemas of the chart.
func requireDefinitions(t *testing.T) {
	t.Helper()
	manifest := helm(t, "get", "manifest", "lockstep", "-n", system)
	var definitions []string
	for _, document := range strings.Split(manifest, "\n---\n") {
		if strings.Contains(document, "\nkind: CustomResourceDefinition\n") {
			definitions = append(definitions, document)
		}
	}
	if len(definitions) == 0 {
		t.Fatal("the release has no definitions")
	}
	text := strings.Join(definitions, "\n---\n")
	stored := schemasOf(t, kube.Kubectl(t, text, "get", "-o", "json", "-f", "-"))
	if diff := cmp.Diff(schemasOf(t, text), stored); diff != "" {
		t.Errorf("definitions (-chart +cluster):\n%s", diff)
	}
	t.Logf("%d definitions have the schemas of the chart", len(stored))
}

// removeNewer deletes what kubectl has installed and a former chart does not have: no installation of that time has made it.
func removeNewer(t *testing.T, former string) {
	t.Helper()
	then := objectsOf(t, former)
	for name, object := range objectsOf(t, chartPath) {
		if _, known := then[name]; !known {
			kube.Kubectl(t, object, "delete", "--ignore-not-found", "--timeout=60s", "-f", "-")
		}
	}
}

// objectsOf returns the objects that a chart makes, as JSON by kind and name.
func objectsOf(t *testing.T, chart string) map[string]string {
	t.Helper()
	found := map[string]string{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(helm(t, "template", "lockstep", chart, "-n", system)), 4096)
	for {
		var o unstructured.Unstructured
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "" {
			continue // A document of comments.
		}
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		found[o.GetKind()+"/"+o.GetName()] = string(text)
	}
}

// schemasOf returns the schemas of definitions, by name. They are documents, or items of a list.
func schemasOf(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var o map[string]any
		if err := documents.Decode(&o); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		items, isList := o["items"].([]any)
		if !isList {
			items = []any{o}
		}
		for _, each := range items {
			definition := each.(map[string]any)
			found[fmt.Sprint(definition["metadata"].(map[string]any)["name"])] = definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"]
		}
	}
}

// namesOf returns the names of objects of Lockstep, of some kinds; those of Cluster API's own are none.
func namesOf(t *testing.T, kinds, namespace string) string {
	t.Helper()
	args := []string{"get", kinds, "-o", "name"}
	if namespace != "" {
		args = append(args, "-n", namespace)
	}
	var found []string
	for line := range strings.Lines(kube.Kubectl(t, "", args...)) {
		for _, ours := range []string{"lockstep", "bindy.firestoned.io", "externaldns.k8s.io"} {
			if strings.Contains(line, ours) {
				found = append(found, strings.TrimSpace(line))
				break
			}
		}
	}
	return strings.Join(found, " ")
}
