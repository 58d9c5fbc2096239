package attack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// bind9Instance is the manifest of an instance that stands alone.
func bind9Instance(name, fields string) string {
	return fmt.Sprintf(`---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Instance
metadata: {name: %s}
spec: {role: primary%s}
`, name, fields)
}

// A name from which no pod, Service or label can be made is refused, and costs nobody else anything.
func TestAttack06LongName(t *testing.T) {
	kube.Isolated(t)
	n := newTenant(t, "names")
	n.expectRefused(bind9Instance(strings.Repeat("a", 250), ""), "metadata.name must be at most 52")
	n.expectRefused(bind9Instance("dotted.name", ""), "metadata.name must be at most 52")
	n.expectRefused(bind9Cluster(strings.Repeat("a", 40)), "metadata.name must be at most 39")
}

// Values that a decoder of ours cannot read are refused by kube-apiserver.
func TestAttack07Poison(t *testing.T) {
	kube.Isolated(t)
	n := newTenant(t, "poison")
	n.expectRefused(bind9Instance("fraction", `, storage: {emptyDir: {sizeLimit: "1e1.5"}}`), "sizeLimit")
	n.expectRefused(bind9Instance("bomb", `, storage: {emptyDir: {sizeLimit: "1e999999999"}}`), "sizeLimit")
	n.expectRefused(bind9Instance("port", `, bindcarConfig: {serviceSpec: {ports: [{port: 53, targetPort: 99999999999}]}}`), "targetPort")
}

// Half-sent reviews, by the hundreds, do not keep others from being judged.
func TestAttack10HalfSentReviews(t *testing.T) {
	kube.Disruptive(t, nil)
	n := newTenant(t, "reviews")
	address := webhookAddress(t)
	stop := make(chan struct{})
	defer close(stop)
	for i := range 300 {
		request := "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		if i%3 != 0 { // The others never end their headers.
			request += "Content-Length: 1000000\r\n\r\n{"
		}
		go keepSending(t.Context(), stop, address, request)
	}
	for i := range 20 {
		name := fmt.Sprintf("z%d", i)
		n.apply(dnsZone(name, name+".test", "clusterRef: none"))
	}
}

// keepSending sends the beginning of a request again whenever its connection has ended.
func keepSending(ctx context.Context, stop <-chan struct{}, address, request string) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	for ctx.Err() == nil {
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			_, _ = conn.Write([]byte(request))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = conn.Read(make([]byte, 1))
			}()
			select {
			case <-stop:
			case <-ended:
			}
			_ = conn.Close()
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// A review that a pod forges learns nothing once the webhook answers kube-apiserver alone; admission works as before. Nobody gets
// there through kube-apiserver either.
func TestAttack10ForgedReview(t *testing.T) {
	kube.Disruptive(t, nil)
	victim, attacker := newTenant(t, "victim"), newTenant(t, "attacker")
	victim.apply(dnsZone("main", "bank.example", "clusterRef: none") + aRecord("secret-name", "main", "www", "192.0.2.1"))
	review := forgedReview(victim.namespace)
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		if answer, err := askWebhook(ctx, t, review); err != nil || !strings.Contains(answer, "secret-name") {
			return fmt.Errorf("without the component the forged review is answered with %q, %w: the refusals would prove nothing", answer, err)
		}
		return nil
	})
	defer func() {
		kube.Reinstall(t)
		kube.Kubectl(t, "", "delete", "apiservice", "v1.admission.bindy.firestoned.io")
		kube.Kubectl(t, "", "delete", "rolebinding", "--namespace=kube-system", "lockstep-webhook-authentication-reader")
	}()
	kube.InstallOverlay(t, "test/attack/testdata/authenticated", system)
	for _, path := range []string{"/validate", "/apis/admission.bindy.firestoned.io/v1/validate"} {
		if answer, err := askWebhookAt(t.Context(), t, path, review); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("%s: the forged review is answered with %q, %v", path, answer, err)
		}
	}
	file := filepath.Join(t.TempDir(), "review.json")
	if err := os.WriteFile(file, []byte(review), 0o600); err != nil {
		t.Fatal(err)
	}
	raw := []string{"create", "--raw", "/apis/admission.bindy.firestoned.io/v1/validate", "-f", file}
	if out, err := attacker.try("", raw...); err == nil || !strings.Contains(out, "orbidden") {
		t.Errorf("the tenant's review is answered through kube-apiserver: %v: %s", err, out)
	}
	if out, err := kube.TryKubectl(t, "", raw...); err == nil || !strings.Contains(out, "only kube-apiserver may ask") {
		t.Errorf("an administrator's review is answered: %v: %s", err, out)
	}
	// Admission works: it refuses, it marks, it allows.
	victim.expectRefused(strings.Replace(aRecord("bad", "main", "bad", "192.0.2.1"), "192.0.2.1", "192.0.2.300", 1), "192.0.2.300")
	victim.apply(aRecord("good", "main", "good", "192.0.2.2"))
	if out := victim.kubectl("get", "arecord", "good", "-o=jsonpath={.metadata.annotations}"); !strings.Contains(out, "bank.example") {
		t.Errorf("the record is not marked: %s", out)
	}
}

// forgedReview is a review of a CNAME record that claims to be in another tenant's namespace, at a name that is taken there.
func forgedReview(namespace string) string {
	return fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
  "uid": "forged", "operation": "CREATE", "namespace": %q, "name": "probe", "userInfo": {"username": "system:admin"},
  "kind": {"group": "bindy.firestoned.io", "version": "v1beta1", "kind": "CNAMERecord"},
  "resource": {"group": "bindy.firestoned.io", "version": "v1beta1", "resource": "cnamerecords"},
  "object": {"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "CNAMERecord",
    "metadata": {"namespace": %[1]q, "name": "probe", "labels": {"zone": "main"}}, "spec": {"name": "www", "target": "a.example."}}}}`, namespace)
}

func askWebhook(ctx context.Context, t *testing.T, review string) (string, error) {
	t.Helper()
	return askWebhookAt(ctx, t, "/validate", review)
}

// askWebhookAt sends a review to a pod of the webhook, as a program in any pod can, and returns the answer.
func askWebhookAt(ctx context.Context, t *testing.T, path, review string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+webhookAddress(t)+path, strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Remote-User", "system:apiserver")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// webhookAddress returns where a ready pod of the webhook listens.
func webhookAddress(t *testing.T) string {
	t.Helper()
	var pods corev1.PodList
	if err := kube.Client(t).List(t.Context(), &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "webhook"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && status.PodReady(pod) {
			return net.JoinHostPort(pod.Status.PodIP, "9443")
		}
	}
	t.Fatal("the webhook does not run")
	return ""
}

// newDNSUser creates a user who may do everything with our kinds in a namespace, and nothing with Kubernetes' own but read Secrets: who may
// not name a Secret is refused by another policy, and Kubernetes does not say which of two it reports.
func newDNSUser(t *testing.T) *tenant {
	t.Helper()
	n := newUser(t, "deputy")
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "dns"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1beta1.GroupName}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		},
	}
	if err := n.client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	n.bindRole("Role", role.Name, "bind9instances.bindy.firestoned.io")
	return n
}

// A right to our kinds is no right to pods, Secrets and Services.
func TestAttack12ConfusedDeputy(t *testing.T) {
	kube.Isolated(t)
	n := newDNSUser(t)
	for name, fields := range map[string]string{
		"host":   `, volumes: [{name: host, hostPath: {path: /}}], volumeMounts: [{name: host, mountPath: /host}]`,
		"secret": `, bindcarConfig: {volumes: [{name: s, secret: {secretName: theirs}}], volumeMounts: [{name: s, mountPath: /s}]}`,
		"image":  `, image: {image: attacker/named}`,
		"key":    `, rndcSecretRef: {name: theirs}`,
	} {
		n.expectRefused(bind9Instance(name, fields), "right to create pods in namespace "+n.namespace)
	}
	n.expectRefused(bind9Instance("service", `, bindcarConfig: {serviceSpec: {externalIPs: [192.0.2.1]}}`), "right to create services in namespace "+n.namespace)
	n.apply(bind9Instance("plain", ""))

	theirs := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "shop"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := n.client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	n.apply(bind9Instance("shop", ""))
	instance := &v1beta1.Bind9Instance{ObjectMeta: theirs.ObjectMeta}
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		if err := n.client.Get(ctx, client.ObjectKeyFromObject(theirs), instance); err != nil {
			return err
		}
		if got := instance.Status.FailureMessage; !strings.Contains(got, "Service "+n.namespace+"/shop: the object exists already and is somebody else's: delete or rename it, or give Bind9Instance shop another name") {
			return fmt.Errorf("the instance says %q", got)
		}
		return nil
	})
	n.kubectl("delete", "bind9instance", "shop", "--wait")
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		var config corev1.ConfigMap
		if err := n.client.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: "shop-config"}, &config); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the instance's own objects are still there"))
		}
		return nil
	})
	var after corev1.Service
	if err := n.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), &after); err != nil {
		t.Fatalf("the Service went with the instance: %v", err)
	}
	if after.UID != theirs.UID || len(after.OwnerReferences) > 0 || after.Spec.Selector["app"] != "shop" {
		t.Errorf("the Service was changed: %+v", after)
	}
}
