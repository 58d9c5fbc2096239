package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Only who may read the namespace learns anything about it.
func TestReadByPersona(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "persona.example", 1, 0)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitInSync("arecord.www", 1)
	other := kube.Namespace(t, "it")
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "viewer"}},
	})
	// A right may also be to one object alone.
	f.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{syncv1.GroupName}, Resources: []string{"syncstatuses"}, ResourceNames: []string{"arecord.www"}, Verbs: []string{"get"},
		}},
	}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "one"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "one"}},
	})
	as := func(user string, args ...string) error {
		out, err := kube.TryKubectl(t, "", append([]string{"--as", user}, args...)...)
		switch {
		case strings.Contains(out, "Forbidden") || strings.Contains(out, "forbidden"):
			if strings.Contains(out, "persona.example") {
				t.Errorf("%s learns about the zone from: %s", user, out)
			}
			return errForbidden
		case err != nil:
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	// The binding takes effect a moment after it was written.
	kube.Eventually(t, kube.Settle, func(context.Context) error { return as("viewer", "-n", f.namespace, "get", "syncstatus") })
	for _, args := range [][]string{
		{"get", "syncstatus"},
		{"get", "syncstatus", "arecord.www"},
		{"get", "syncstatus", "--field-selector", "metadata.name=arecord.www"},
		{"get", "syncstatus", "--watch", "--request-timeout=10s"},
		{"get", "syncstatus", "bind9cluster.dns"},
		{"get", "syncstatus", "--field-selector", "zone=persona.example"},
		{"get", "dnszones.sync.bindy.firestoned.io", "main", "--subresource=syncstatus"},
		{"get", "bind9clusters.sync.bindy.firestoned.io", "dns", "--subresource=syncstatus"},
		{"get", "arecords.sync.bindy.firestoned.io", "www", "--subresource=syncstatus"},
	} {
		if err := as("viewer", append([]string{"-n", f.namespace}, args...)...); errors.Is(err, errForbidden) {
			t.Errorf("viewer may not %v", args)
		}
		for _, space := range []string{f.namespace, other} {
			if err := as("nobody", append([]string{"-n", space}, args...)...); !errors.Is(err, errForbidden) {
				t.Errorf("nobody may %v in %s: %v", args, space, err)
			}
		}
		if err := as("viewer", append([]string{"-n", other}, args...)...); !errors.Is(err, errForbidden) {
			t.Errorf("viewer may %v in another namespace: %v", args, err)
		}
	}
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		return as("one", "-n", f.namespace, "get", "syncstatus", "arecord.www")
	})
	for _, args := range [][]string{{"dnszone.main"}, {}, {"--field-selector", "metadata.name=arecord.www"}} {
		if err := as("one", append([]string{"-n", f.namespace, "get", "syncstatus"}, args...)...); !errors.Is(err, errForbidden) {
			t.Errorf("who may see one object may get %v: %v", args, err)
		}
	}
	if err := as("viewer", "get", "syncstatus", "-A"); !errors.Is(err, errForbidden) {
		t.Errorf("viewer may list all namespaces: %v", err)
	}
	if err := as("viewer", "-n", f.namespace, "delete", "syncstatus", "arecord.www"); err == nil {
		t.Error("viewer may delete")
	}
	f.runSub("past kube-apiserver", func(f *fixture) { f.testDirectRequests(other) })
}

// testDirectRequests comes to the API server past kube-apiserver, which lets through only who may: our own server asks who somebody
// is, and what he may, before it answers.
func (f *fixture) testDirectRequests(other string) {
	f.Helper()
	f.create(
		&corev1.ServiceAccount{ObjectMeta: f.meta("reader", nil)},
		&rbacv1.RoleBinding{
			ObjectMeta: f.meta("reader", nil),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "reader"}},
		})
	reader := http.Header{"Authorization": {"Bearer " + strings.TrimSpace(f.kubectl("create", "token", "reader"))}}
	const group = "/apis/sync.bindy.firestoned.io/v1alpha1"
	here, there := group+"/namespaces/"+f.namespace, group+"/namespaces/"+other
	ask := f.directClient()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { // The binding takes effect a moment after it was written.
		code, said, err := ask(ctx, here+"/syncstatuses", reader)
		if err == nil && (code != http.StatusOK || !strings.Contains(said, "persona.example")) {
			err = fmt.Errorf("%d %s", code, said)
		}
		return err
	})
	for who, c := range map[string]struct {
		header http.Header
		want   int
		paths  []string
	}{
		"reader": {reader, http.StatusForbidden, []string{
			group + "/syncstatuses", group + "/syncstatuses?fieldSelector=metadata.namespace%3D" + f.namespace, there + "/syncstatuses?watch=true&timeoutSeconds=1",
			there + "/syncstatuses?fieldSelector=metadata.namespace%3D" + f.namespace, there + "/syncstatuses/arecord.www", "/metrics", "/debug/pprof/",
		}},
		"nobody":              {nil, http.StatusForbidden, []string{here + "/syncstatuses", here + "/syncstatuses/arecord.www", here + "/syncstatuses/arecord.none", here + "/arecords/www/syncstatus", "/metrics"}},
		"a liar":              {http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, http.StatusForbidden, []string{here + "/syncstatuses"}},
		"who would be others": {http.Header{"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}}, http.StatusForbidden, []string{here + "/syncstatuses"}},
		"a forger":            {http.Header{"Authorization": {"Bearer nonsense"}}, http.StatusUnauthorized, []string{here + "/syncstatuses"}},
		"the kubelet":         {nil, http.StatusOK, []string{"/livez", "/readyz"}},
	} {
		for _, path := range c.paths {
			code, said, err := ask(f.Context(), path, c.header)
			if err != nil || code != c.want || strings.Contains(said, "persona.example") {
				f.Errorf("%s at %s: %d %s %v, want %d and no word of the zone", who, path, code, said, err, c.want)
			}
		}
	}
}

// directClient returns a function that sends requests to the API server's pod.
func (f *fixture) directClient() (ask func(ctx context.Context, path string, header http.Header) (code int, said string, err error)) {
	f.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.authoritySecret(f.Context()).Data["bundle.crt"])
	direct := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "lockstep-apiserver." + system + ".svc"}}}
	f.Cleanup(direct.CloseIdleConnections)
	pods := slices.DeleteFunc(f.componentPods(f.Context(), "apiserver"), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	return func(ctx context.Context, path string, header http.Header) (int, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(pods[0].Status.PodIP, "8443")+path, nil)
		if err != nil {
			return 0, "", err
		}
		maps.Copy(request.Header, header)
		reply, err := direct.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = reply.Body.Close() }()
		said, err := io.ReadAll(reply.Body)
		return reply.StatusCode, string(said), err
	}
}

var errForbidden = errors.New("forbidden")
