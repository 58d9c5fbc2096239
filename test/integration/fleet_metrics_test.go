package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// Metrics are for accounts that may read them. Those of sidecars are TestFleetSidecarsAreClosed's.
func TestFleetMetricsAreClosed(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	tokens := map[string]string{"": ""}
	for _, name := range []string{"reader", "stranger"} {
		account := &corev1.ServiceAccount{ObjectMeta: f.meta(name, nil)}
		f.create(account)
		token := &authenticationv1.TokenRequest{}
		if err := f.client.SubResource("token").Create(t.Context(), account, token); err != nil {
			t.Fatal(err)
		}
		tokens[name] = token.Status.Token
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lockstep-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.namespace, Name: "reader"}},
	}
	f.create(binding)
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "clusterrolebinding", binding.Name) })

	for component, port := range map[string]string{"controller": "8080", "fleet": "8080", "webhook": "8080", "apiserver": "8443"} {
		address := net.JoinHostPort(f.componentAddress(component), port)
		for name, want := range map[string]int{"": http.StatusUnauthorized, "stranger": http.StatusForbidden, "reader": http.StatusOK} {
			if component == "apiserver" && name == "" {
				want = http.StatusForbidden // Kubernetes' own servers have a name for whoever says none.
			}
			kube.Eventually(t, time.Minute, func(ctx context.Context) error { // Bindings take effect a moment after they were written.
				got, page, err := readMetrics(ctx, "https://"+address, tokens[name])
				if err != nil || got != want || (got == http.StatusOK) != strings.Contains(page, "process_cpu_seconds_total") {
					return fmt.Errorf("%s answers %q with %d, want %d: %w", component, name, got, want, err)
				}
				return nil
			})
		}
		if got, _, err := readMetrics(t.Context(), "http://"+address, tokens["reader"]); err == nil && got == http.StatusOK {
			t.Errorf("%s answers in clear text", component)
		}
	}
}

// componentAddress returns the address of a pod of a component that runs.
func (f *fixture) componentAddress(component string) (ip string) {
	f.Helper()
	kube.Eventually(f, time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := f.client.List(ctx, &pods, client.InNamespace("lockstep-system"), client.MatchingLabels{"app.kubernetes.io/component": component}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp.IsZero() && pod.Status.Phase == corev1.PodRunning {
				ip = pod.Status.PodIP
				return nil
			}
		}
		return fmt.Errorf("no pod of %s runs", component)
	})
	return ip
}

// readMetrics returns the HTTP status and the page that the caller with a token gets.
func readMetrics(ctx context.Context, base, token string) (code int, page string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// Each process signs its certificate itself.
	caller := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := caller.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
