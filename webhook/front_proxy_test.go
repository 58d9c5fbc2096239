package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/lockstep-dns/lockstep/webhook/mark"
	"github.com/lockstep-dns/lockstep/webhook/review"
)

// newTestProxy returns a front proxy that has read what kube-apiserver publishes about one with an authority.
func newTestProxy(t *testing.T, authority clientAuthority) *frontProxy {
	t.Helper()
	proxy, err := newFrontProxy(fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: proxyConfigMap},
		Data: map[string]string{
			"requestheader-client-ca-file":       string(authority.pem),
			"requestheader-allowed-names":        `["front-proxy-client"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if proxy.checkReady(nil) == nil {
		t.Error("ready before anything is known")
	}
	go func() { _ = proxy.run(t.Context()) }()
	if wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return proxy.checkReady(nil) == nil, nil
	}) != nil {
		t.Fatal(proxy.checkReady(nil))
	}
	return proxy
}

// Behind the aggregation layer, nobody is answered but kube-apiserver itself, and nobody else's body is read.
func TestAggregatedReviews(t *testing.T) {
	authority, other := newClientAuthority(t), newClientAuthority(t)
	proxy := newTestProxy(t, authority)
	unknown, err := newFrontProxy(fake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	registerReviews(mux, proxy, map[string]http.Handler{review.Path: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	const genuine = "front-proxy-client"
	for name, c := range map[string]struct {
		proxy        *frontProxy
		certificates []tls.Certificate
		user, path   string
		want         int // no status: the handshake fails
	}{
		"kube-apiserver":         {proxy, []tls.Certificate{authority.issue(t, genuine)}, user.APIServerUser, aggregatedPath + review.Path, http.StatusOK},
		"an administrator":       {proxy, []tls.Certificate{authority.issue(t, genuine)}, "admin", aggregatedPath + review.Path, http.StatusForbidden},
		"without a user":         {proxy, []tls.Certificate{authority.issue(t, genuine)}, "", aggregatedPath + review.Path, http.StatusForbidden},
		"the path without proxy": {proxy, []tls.Certificate{authority.issue(t, genuine)}, user.APIServerUser, review.Path, http.StatusNotFound},
		"discovery":              {proxy, []tls.Certificate{authority.issue(t, genuine)}, "system:kube-aggregator", aggregatedPath, http.StatusOK},
		"a pod":                  {proxy, nil, user.APIServerUser, aggregatedPath + review.Path, 0},
		"another name":           {proxy, []tls.Certificate{authority.issue(t, "somebody")}, user.APIServerUser, aggregatedPath + review.Path, 0},
		"another authority":      {proxy, []tls.Certificate{other.issue(t, genuine)}, user.APIServerUser, aggregatedPath + review.Path, 0},
		"nothing is known yet":   {unknown, []tls.Certificate{authority.issue(t, genuine)}, user.APIServerUser, aggregatedPath + review.Path, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(mux)
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
			c.proxy.requireCertificate(server.TLS)
			server.StartTLS()
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: c.certificates}}}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+c.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Remote-User", c.user)
			got := 0
			if answer, err := client.Do(request); err == nil {
				_ = answer.Body.Close()
				got = answer.StatusCode
			}
			if got != c.want {
				t.Errorf("answered %d, want %d", got, c.want)
			}
		})
	}
}

// The component sends every webhook of the base to kube-apiserver itself, at the path that it is served at then.
func TestComponentRedirectsEveryWebhook(t *testing.T) {
	service := map[string]any{"namespace": "default", "name": "kubernetes", "port": float64(443)}
	for kind, path := range map[string]string{"MutatingWebhookConfiguration": mark.Path, "ValidatingWebhookConfiguration": review.Path} {
		service["path"] = aggregatedPath + path
		redirected := servicesOf(t, "../manifests/components/authenticated-webhook/admission.yaml", kind)
		for name := range servicesOf(t, "../manifests/base/admission.yaml", kind) {
			if diff := cmp.Diff(service, redirected[name]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			delete(redirected, name)
		}
		if len(redirected) > 0 {
			t.Errorf("the component adds webhooks: %v", redirected)
		}
	}
}

// servicesOf returns the services of the webhooks of a kind in a file, by the webhooks' names.
func servicesOf(t *testing.T, file, kind string) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	services := map[string]map[string]any{}
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return services
		} else if err != nil {
			t.Fatal(err)
		}
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, webhook := range webhooks {
			if w, ok := webhook.(map[string]any); ok && object.GetKind() == kind {
				service, _, _ := unstructured.NestedMap(w, "clientConfig", "service")
				services[w["name"].(string)] = service
			}
		}
	}
}
