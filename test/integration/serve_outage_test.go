package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// While no replica of the API server runs, everything is as docs/outages.md says. That Lockstep can be uninstalled meanwhile
// is shown by TestMainJobUninstallWithoutController.
func TestServeOutage(t *testing.T) {
	var f *fixture
	kube.Disruptive(t, func() { f = newServedRecord(t, "outage.example") })
	defer func() {
		kube.Kubectl(t, "", "apply", "-k", kube.Overlay)
		f.scaleAPIServer(1)
	}()
	f.scaleAPIServer(0)

	f.runSub("others are not disturbed", func(f *fixture) {
		f.checkUndisturbed()
		out, err := kube.TryKubectl(f, "", "-n", f.namespace, "get", "dns", "--cache-dir="+f.TempDir())
		if !strings.Contains(out, "arecord.bindy.firestoned.io/www") || err != nil && !strings.Contains(out, "(get syncstatuses.sync.bindy.firestoned.io)") {
			f.Errorf("kubectl get dns: %v\n%s", err, out)
		}
		f.create(f.aRecord("new", "new", "192.0.2.2"))
		f.waitServed("new.outage.example.", "A", "192.0.2.2")
	})
	out, err := kube.TryKubectl(f, "", "-n", f.namespace, "get", "syncstatus")
	if err == nil || !strings.Contains(out, "the server is currently unable to handle the request") {
		f.Errorf("kubectl get syncstatus: %v %s", err, out)
	}
	f.runSub("a namespace is emptied and waits for the APIService to go", func(f *fixture) {
		f.waitDiscoveryStale()
		f.checkUndisturbed()
		f.kubectl("get", "dns", "--cache-dir="+f.TempDir())
		name := f.deleteNamespaceInOutage()
		kube.Kubectl(f, "", "delete", "apiservice", apiService)
		f.waitNamespaceGone(name)
		kube.Kubectl(f, "", "apply", "-f", "manifests/base/apiservice.yaml")
		kube.Kubectl(f, "", "wait", "--for=condition=Available=False", "apiservice/"+apiService, "--timeout=120s")
	})
	f.runSub("or for the API server to come back", func(f *fixture) {
		f.waitDiscoveryStale()
		name := f.deleteNamespaceInOutage()
		f.scaleAPIServer(1)
		f.waitNamespaceGone(name)
	})
}

// newServedRecord is a fixture with one server and the record www in sync.
func newServedRecord(t *testing.T, zone string) *fixture {
	t.Helper()
	f := newFixture(t, zone, 1, 0)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitInSync("arecord.www", 1)
	return f
}

// checkUndisturbed looks at what has nothing to do with the API, as somebody does whose kubectl remembers nothing of the cluster.
func (f *fixture) checkUndisturbed() {
	f.Helper()
	for _, args := range []string{"get pods", "get all", "get arecords", "get dnszones", "explain configmap"} {
		f.kubectl(append(strings.Fields(args), "--cache-dir="+f.TempDir())...)
	}
	// It lists everything else, and may end with an error that names what it cannot.
	out, err := kube.TryKubectl(f, "", "api-resources", "--cache-dir="+f.TempDir())
	for _, want := range []string{"deployments", "flowschemas", "arecords", "dnsendpoints"} {
		if !strings.Contains(out, want) {
			f.Errorf("kubectl api-resources lacks %s: %v\n%s", want, err, out)
		}
	}
	if err != nil && !strings.Contains(out, "sync.bindy.firestoned.io") {
		f.Errorf("kubectl api-resources: %v\n%s", err, out)
	}
}

// waitDiscoveryStale waits until kube-apiserver reports its discovery of the API as stale. It looks once a minute, and whenever the
// APIService changes.
func (f *fixture) waitDiscoveryStale() {
	f.Helper()
	l := newClients(f.T)
	service := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: apiService}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	kube.Eventually(f, 4*kube.Settle, func(ctx context.Context) error {
		look := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.lockstep/look":"%d"}}}`, time.Now().UnixNano())
		if err := f.client.Patch(ctx, service, client.RawPatch(types.MergePatchType, look)); err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.host+"/apis", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		reply, err := l.http.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = reply.Body.Close() }()
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.NewDecoder(reply.Body).Decode(&list); err != nil {
			return err
		}
		for _, group := range list.Items {
			if group.Name == syncv1.GroupName && group.Versions[0].Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				return nil
			}
		}
		return errors.New("discovery is not stale yet")
	})
}

// scaleAPIServer sets the number of replicas, and waits until kube-apiserver knows what that means for the API.
func (f *fixture) scaleAPIServer(replicas int) {
	f.Helper()
	kube.Kubectl(f, "", "-n", system, "scale", "deployment/lockstep-apiserver", fmt.Sprint("--replicas=", replicas))
	kube.Kubectl(f, "", "wait", fmt.Sprint("--for=condition=Available=", replicas > 0), "apiservice/"+apiService, "--timeout=120s")
}

// deleteNamespaceInOutage makes a namespace with something in it and deletes it, while the API is away: it loses its content and stays, and
// says why.
func (f *fixture) deleteNamespaceInOutage() (name string) {
	f.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "it-endless-"}}
	f.create(ns)
	content := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "content"}},
		&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "content"}, Spec: v1beta1.ARecordSpec{
			RecordCommon: v1beta1.RecordCommon{Name: "www"}, IPv4Addresses: []string{"192.0.2.1"},
		}},
	}
	f.create(content...)
	if err := f.client.Delete(f.Context(), ns); err != nil {
		f.Fatal(err)
	}
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		for _, o := range content {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is still there: %w", o, err)
			}
		}
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
			return err
		}
		for _, c := range ns.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionDiscoveryFailure && c.Status == corev1.ConditionTrue {
				if !strings.Contains(c.Message, "sync.bindy.firestoned.io") {
					return fmt.Errorf("the condition does not name the API: %s", c.Message)
				}
				f.Log(c.Message)
				return nil
			}
		}
		return errors.New("the namespace does not say why it stays")
	})
	return ns.Name
}

// waitNamespaceGone waits until the namespace is gone.
func (f *fixture) waitNamespaceGone(namespace string) {
	f.Helper()
	began := time.Now()
	kube.Kubectl(f, "", "wait", "--for=delete", "namespace/"+namespace, "--timeout=120s")
	f.Logf("gone after another %s", time.Since(began).Round(100*time.Millisecond))
}
