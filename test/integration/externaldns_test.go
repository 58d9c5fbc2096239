package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// externalDNSRelease is a build of external-dns by `make external-dns`, and how its annotations begin.
type externalDNSRelease struct{ program, annotations string }

var (
	externalDNS021 = externalDNSRelease{"external-dns", "external-dns.alpha.kubernetes.io/"}
	externalDNS022 = externalDNSRelease{"external-dns-0.22", "external-dns.kubernetes.io/"}
)

// externalDNS is an external-dns with its provider, as processes here that have the rights of the component external-dns.
type externalDNS struct {
	*fixture
	release                   externalDNSRelease
	folder, owner, kubeconfig string
	ports                     []int
}

// The names of Services and Ingresses, by a real external-dns. All tests share the zone externaldns.example.
func TestExternalDNS(t *testing.T) {
	kube.Isolated(t, "gateway.networking.k8s.io")
	f := newFixture(t, "externaldns.example", 1, 1)
	e := newExternalDNS(f)
	for _, release := range []externalDNSRelease{externalDNS022, externalDNS021} {
		e.release = release
		e.runSub("life of "+release.program, func(f *fixture) { externalDNSLife(e.in(f)) })
	}
	e.runSub("two claims", func(f *fixture) { externalDNSClaims(e.in(f)) })
	e.runSub("another namespace", func(f *fixture) { externalDNSElsewhere(e.in(f)) })
	e.runSub("upsert only", func(f *fixture) { externalDNSUpsertOnly(e.in(f)) })
	e.runSub("routes", func(f *fixture) { externalDNSRoutes(e.in(f)) })
	e.runSub("status", externalDNSStatus)
	e.runSub("dry run", func(f *fixture) { externalDNSDryRun(e.in(f)) })
}

func (e externalDNS) in(f *fixture) externalDNS {
	e.fixture = f
	return e
}

// newExternalDNS makes a kubeconfig with the rights of the component.
func newExternalDNS(f *fixture) externalDNS {
	f.Helper()
	e := externalDNS{fixture: f, folder: kube.Program(f, "external-dns"), owner: "external-dns"}
	var err error
	if e.ports, err = namedtest.FreePorts(3); err != nil {
		f.Fatal(err)
	}
	e.grantRights()
	return e
}

// grantRights gives a user the ClusterRoles of the components, and writes a kubeconfig that acts as that user.
func (e *externalDNS) grantRights() {
	e.Helper()
	user := "external-dns-of-" + e.namespace
	role := &rbacv1.ClusterRole{}
	for _, component := range []string{"external-dns", "external-dns-gateway"} {
		text, err := os.ReadFile(filepath.Join(kube.Root(e), "manifests/components", component, "rbac.yaml"))
		if err != nil {
			e.Fatal(err)
		}
		one := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(bytes.Split(text, []byte("\n---\n"))[0], one); err != nil {
			e.Fatal(err)
		}
		role.Rules = append(role.Rules, one.Rules...)
	}
	role.Name = user
	role.Rules = append(role.Rules, rbacv1.PolicyRule{ // With its source CRD external-dns needs this, too.
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"dnsendpoints/status"}, Verbs: []string{"update"},
	})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	e.create(role, binding)
	e.Cleanup(func() {
		for _, o := range []client.Object{role, binding} {
			_ = e.client.Delete(context.WithoutCancel(e.Context()), o)
		}
	})
	e.kubeconfig = filepath.Join(e.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigAs(kube.Config(e), user), e.kubeconfig); err != nil {
		e.Fatal(err)
	}
}

// kubeconfigAs returns a kubeconfig that acts as a user.
func kubeconfigAs(c *rest.Config, user string) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificate: c.CertFile, ClientKey: c.KeyFile, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken, Impersonate: user}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
}

// startProvider runs lockstep externaldns, which answers then, until the returned function is called.
func (e externalDNS) startProvider(flags ...string) (stop func()) {
	e.Helper()
	stop = e.start(false, append([]string{kube.Program(e, "bin/lockstep"), "externaldns", fmt.Sprintf("--bind-address=localhost:%d", e.ports[0]),
		fmt.Sprintf("--health-probe-bind-address=localhost:%d", e.ports[1]), "--owner=" + e.owner}, flags...)...)
	kube.Eventually(e, kube.Settle, func(ctx context.Context) error {
		_, err := readURL(ctx, fmt.Sprintf("http://localhost:%d/", e.ports[0]))
		return err
	})
	return stop
}

// startExternalDNS runs external-dns until the returned function is called. With restart its provider may be away for a moment.
func (e externalDNS) startExternalDNS(restart bool, flags ...string) (stop func()) {
	e.Helper()
	return e.start(restart, append([]string{filepath.Join(e.folder, e.release.program), "--provider=webhook", fmt.Sprintf("--webhook-provider-url=http://localhost:%d", e.ports[0]),
		"--registry=noop", "--kubeconfig=" + e.kubeconfig, "--interval=2s", "--events", fmt.Sprintf("--metrics-address=localhost:%d", e.ports[2])},
		append(flags, "--source=service", "--source=ingress")...)...)
}

// start runs a program until the returned function kills it. If the program ends by itself, the test fails or, with restart, it starts again, as
// the kubelet has it. The output is logged if the test fails.
func (e externalDNS) start(restart bool, args ...string) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	var output bytes.Buffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig)
			cmd.Stdout, cmd.Stderr = &output, &output
			if err := cmd.Run(); ctx.Err() == nil && !restart {
				e.Errorf("%s ended by itself: %v", filepath.Base(args[0]), err)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		if e.Failed() {
			e.Logf("%s:\n%s", filepath.Base(args[0]), output.String())
		}
	})
	e.Cleanup(stop)
	return stop
}

// service is a Service that declares names for the addresses in its annotation.
func (e externalDNS) service(namespace, name, target string, names ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
		e.release.annotations + "hostname": strings.Join(names, ","), e.release.annotations + "target": target, e.release.annotations + "ttl": "60",
	}}}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false), Ports: []corev1.ServicePort{{Port: 80}}}
	return s
}

func (e externalDNS) ingress(name, target, host string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: e.meta(name, nil)}
	i.Annotations = map[string]string{e.release.annotations + "target": target}
	i.Spec.Rules = []networkingv1.IngressRule{{Host: host}}
	return i
}

// waitEvent waits for a Warning Event on an object that says all words.
func (e externalDNS) waitEvent(o client.Object, words ...string) {
	e.Helper()
	kube.Eventually(e, kube.Settle, func(ctx context.Context) error {
		list := &corev1.EventList{}
		if err := e.client.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
			return err
		}
		var seen []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID == o.GetUID() && event.Type == corev1.EventTypeWarning {
				if seen = append(seen, event.Message); containsAll(event.Message, words) {
					return nil
				}
			}
		}
		return fmt.Errorf("%s has the warnings %q", o.GetName(), seen)
	})
}

// A Service, an Ingress and a DNSEndpoint become names, change and go; either program is killed meanwhile. external-dns reads DNSEndpoints
// first, those of its provider included, and replaces their statuses.
func externalDNSLife(e externalDNS) {
	flags := []string{"--policy=sync", "--source=crd", "--namespace=" + e.namespace}
	const zone = ".externaldns.example"
	stopProvider, stopExternalDNS := e.startProvider(), e.startExternalDNS(true, flags...)
	service := e.service(e.namespace, "web", "192.0.2.1,192.0.2.2", "www"+zone, "bad.*"+zone)
	ingress := e.ingress("shop", "web.example.net", "shop"+zone)
	direct := e.dnsEndpoint("direct", endpointEntry("direct"+zone, "A", 0, "192.0.2.9"))
	e.create(service, ingress, direct)
	e.waitServed("www"+zone, "A", "192.0.2.1", "192.0.2.2")
	e.waitServed("shop"+zone, "CNAME", "web.example.net.")
	e.waitServed("direct"+zone, "A", "192.0.2.9")
	e.waitEvent(service, "bad.*", "dnsName")
	e.waitNoChanges()

	stopProvider()
	stopProvider = e.startProvider()
	change(e.fixture, service, func(s *corev1.Service) { s.Annotations[e.release.annotations+"target"] = "192.0.2.3" })
	e.waitServed("www"+zone, "A", "192.0.2.3")

	stopExternalDNS()
	stopExternalDNS = e.startExternalDNS(true, flags...)
	change(e.fixture, service, func(s *corev1.Service) { s.Annotations[e.release.annotations+"hostname"] = "other" + zone })
	e.waitServed("other"+zone, "A", "192.0.2.3")
	e.waitServed("www"+zone, "A")

	stopExternalDNS() // The owner reference alone deletes what is left.
	if err := e.client.Delete(e.Context(), service); err != nil {
		e.Fatal(err)
	}
	e.waitServed("other"+zone, "A")
	e.startExternalDNS(true, flags...)
	for _, o := range []client.Object{ingress, direct} {
		if err := e.client.Delete(e.Context(), o); err != nil {
			e.Fatal(err)
		}
	}
	e.waitServed("shop"+zone, "CNAME")
	e.waitServed("direct"+zone, "A")
	stopProvider()
}

// waitNoChanges waits until external-dns finds nothing to change: everything came back as it was adjusted.
func (e externalDNS) waitNoChanges() {
	e.Helper()
	before := -1.0
	kube.Eventually(e, kube.Settle, func(ctx context.Context) error {
		found, err := readGauge(ctx, fmt.Sprintf("http://localhost:%d/metrics", e.ports[2]), "external_dns_controller_no_op_runs_total")
		if err != nil {
			return err
		}
		if before < 0 {
			before = found
		}
		if found < before+2 {
			return fmt.Errorf("external-dns found nothing to change %v times", found-before)
		}
		return nil
	})
}

func readURL(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func readGauge(ctx context.Context, url, name string) (float64, error) {
	text, err := readURL(ctx, url)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			var value float64
			_, err := fmt.Sscan(text, &value)
			return value, err
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

// Of two source objects that claim a name for different hosts, the older has it. When it goes, the other gets it.
func externalDNSClaims(e externalDNS) {
	const name = "claimed.externaldns.example"
	e.startProvider()
	e.startExternalDNS(false, "--policy=sync", "--namespace="+e.namespace)
	first, second := e.ingress("zz-first", "first.example.net", name), e.ingress("aa-second", "second.example.net", name)
	e.create(first)
	e.waitServed(name, "CNAME", "first.example.net.")
	e.create(second)
	e.waitEvent(second, "Conflict", "already an alias of first.example.net")
	e.waitServed(name, "CNAME", "first.example.net.")
	if err := e.client.Delete(e.Context(), first); err != nil {
		e.Fatal(err)
	}
	e.waitServed(name, "CNAME", "second.example.net.")
	if err := e.client.Delete(e.Context(), second); err != nil {
		e.Fatal(err)
	}
	e.waitServed(name, "CNAME")
}

// A Service of a namespace that the zone does not admit gets no name in it, and keeps nobody from getting it.
func externalDNSElsewhere(e externalDNS) {
	const name = "mine.externaldns.example"
	other := kube.Namespace(e, "it")
	e.startProvider("--allow-zone-namespaces=" + e.namespace)
	e.startExternalDNS(false, "--policy=sync")
	thief, owner := e.service(other, "aa-thief", "198.51.100.1", name), e.ingress("zz-owner", "192.0.2.1", name)
	e.create(thief)
	e.waitEvent(thief, "NoMatchingZone", name)
	e.create(owner)
	e.waitServed(name, "A", "192.0.2.1")
	for _, o := range []client.Object{thief, owner} {
		if err := e.client.Delete(e.Context(), o); err != nil {
			e.Fatal(err)
		}
	}
	e.waitServed(name, "A")
}

// With --policy=upsert-only and without owner references, names stay when their source goes.
func externalDNSUpsertOnly(e externalDNS) {
	const name = "stays.externaldns.example"
	e.startProvider("--owner-references=false", "--wait-propagated=10s")
	e.startExternalDNS(false, "--policy=upsert-only", "--namespace="+e.namespace)
	service := e.service(e.namespace, "stays", "192.0.2.1", name)
	e.create(service)
	e.waitServed(name, "A", "192.0.2.1")
	e.waitNoChanges()
	if err := e.client.Delete(e.Context(), service); err != nil {
		e.Fatal(err)
	}
	e.waitGone(service)
	e.waitNoChanges()
	e.waitServed(name, "A", "192.0.2.1")
	kept := &v1alpha1.DNSEndpoint{}
	if err := e.client.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: "external-dns.service.stays"}, kept); err != nil {
		e.Fatal(err)
	}
	if err := e.client.Delete(e.Context(), kept); err != nil {
		e.Fatal(err)
	}
	e.waitServed(name, "A")
}

// A dry run stores nothing.
func externalDNSDryRun(e externalDNS) {
	e.startProvider("--dry-run", "--owner=dry")
	stop := e.startExternalDNS(false, "--policy=sync", "--namespace="+e.namespace, "--dry-run")
	service := e.service(e.namespace, "dry", "192.0.2.1", "dry.externaldns.example")
	e.create(service)
	kube.Eventually(e, kube.Settle, func(ctx context.Context) error {
		count, err := readGauge(ctx, fmt.Sprintf("http://localhost:%d/metrics", e.ports[2]), "external_dns_webhook_provider_applychanges_requests_total")
		if err == nil && count < 2 {
			err = fmt.Errorf("external-dns has sent changes %v times", count)
		}
		return err
	})
	stop()
	list := &v1alpha1.DNSEndpointList{}
	if err := e.client.List(e.Context(), list, client.InNamespace(e.namespace)); err != nil {
		e.Fatal(err)
	}
	if slices.ContainsFunc(list.Items, func(o v1alpha1.DNSEndpoint) bool { return strings.HasPrefix(o.Name, "dry.") }) {
		e.Error("a dry run has stored a DNSEndpoint")
	}
	if err := e.client.Delete(e.Context(), service); err != nil {
		e.Fatal(err)
	}
}

// external-dns replaces the status of DNSEndpoints that it reads. The conditions come back, and data leaves a zone that does not take the
// object any more.
func externalDNSStatus(f *fixture) {
	o := f.replacedEndpoint()
	f.leaveZone(o)
}

// replacedEndpoint creates a DNSEndpoint in another namespace, and replaces its status when it is served.
func (f *fixture) replacedEndpoint() *v1alpha1.DNSEndpoint {
	f.Helper()
	other := kube.Namespace(f, "it")
	f.admitEndpoints(other)
	o := f.dnsEndpoint("replaced", endpointEntry("replaced."+f.zone, "A", 0, "192.0.2.1"))
	o.Namespace, o.Annotations = other, map[string]string{v1beta1.AllowZoneNamespacesAnnotation: f.namespace}
	f.create(o)
	f.waitProgrammed(o, f.replacedServed())
	f.replaceStatus(o)
	return o
}

func (f *fixture) replacedServed() map[string][]string {
	return map[string][]string{"main": {"replaced." + f.zone + "./A"}}
}

// leaveZone has the zone take no DNSEndpoint any more, and waits until the data of one is gone.
func (f *fixture) leaveZone(o *v1alpha1.DNSEndpoint) {
	f.Helper()
	f.admitEndpoints("nobody")
	f.waitServed("replaced."+f.zone, "A")
	waitCondition(f, o, endpointConditions, "Accepted", metav1.ConditionFalse, "NoMatchingZone", "replaced."+f.zone)
	if err := f.client.Delete(f.Context(), o); err != nil {
		f.Fatal(err)
	}
	f.waitGone(o)
}

// admitEndpoints has the zone admit DNSEndpoints of other namespaces.
func (f *fixture) admitEndpoints(namespaces string) {
	f.Helper()
	change(f, &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}, func(z *v1beta1.DNSZone) {
		metav1.SetMetaDataAnnotation(&z.ObjectMeta, v1beta1.AllowEndpointNamespacesAnnotation, namespaces)
	})
}

// replaceStatus writes a status as external-dns does.
func (f *fixture) replaceStatus(o *v1alpha1.DNSEndpoint) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Status = v1alpha1.DNSEndpointStatus{ObservedGeneration: o.Generation}
		return f.client.Status().Update(ctx, o)
	})
}
