package plugin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// path asks for the zone until every path was asked, shows who answered what to whom, and ends with 1 unless all clients get what the servers have.
func TestPath(t *testing.T) {
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) // by another clock than ours
	at := func(seconds int) *metav1.MicroTime {
		return new(metav1.NewMicroTime(began.Add(time.Duration(seconds) * time.Second)))
	}
	requests := 0
	answered := metav1.ConditionFalse
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/namespaces/dns/syncstatuses/dnszone.example-com") {
			http.NotFound(w, r)
			return
		}
		requests++
		s := object("dns", "DNSZone", "example-com", "example.com")
		s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "SyncStatus"
		s.Servers = []v1alpha1.ServerStatus{{ObservedAt: at(requests)}}
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAnswered, Status: answered, Reason: "x", Message: "as seen from berlin"}}
		published := v1alpha1.Path{Type: v1alpha1.PathNameServer, NameServers: []string{"ns1.example.com."}, Address: "192.0.2.53:53", Protocol: corev1.ProtocolTCP, State: v1alpha1.StateUnknown}
		if requests > 1 {
			published.ObservedAt, published.State, published.Server, published.Serial = at(-60), v1alpha1.StateStale, "fra2", new(int64(41))
		}
		if requests > 2 {
			published.ObservedAt = at(requests)
		}
		there := published
		there.Vantage, there.State, there.Server, there.Serial, there.RTT = "berlin", v1alpha1.StateInSync, "fra1\x1b[2J", new(int64(42)), &metav1.Duration{Duration: 1234567}
		s.Paths = []v1alpha1.Path{
			{Type: v1alpha1.PathService, Instance: "dns-0", Address: "10.96.0.1:53", Protocol: corev1.ProtocolUDP, State: v1alpha1.StateInSync, ObservedAt: at(-20)}, there, published,
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	run := func(args string) (int, string) {
		requests = 0
		var out, errOut bytes.Buffer
		code := Run(t.Context(), strings.Fields(args+" -n dns -s "+server.URL), &out, &errOut)
		return code, out.String() + errOut.String()
	}
	const want = `NAMESERVER         PATH            ADDRESS         PROTOCOL   FROM         STATE    SERVER     SERIAL   RTT
ns1.example.com.   NameServer      192.0.2.53:53   TCP        API server   Stale    fra2       41
ns1.example.com.   NameServer      192.0.2.53:53   TCP        berlin       InSync   fra1 [2J   42       1.23ms
                   Service dns-0   10.96.0.1:53    UDP        API server   InSync
Answered: False (as seen from berlin)
`
	for _, name := range []string{"example-com", "dnszone/example-com", "dnszone.example-com"} {
		if code, text := run("path " + name); code != 1 || text != want || requests != 3 {
			t.Errorf("%s: exit code %d after %d requests:\n%s", name, code, requests, text)
		}
	}
	if _, text := run("path example-com --timeout=1ms"); requests != 1 || !strings.Contains(text, "Unknown") {
		t.Errorf("%d requests:\n%s", requests, text)
	}
	answered = metav1.ConditionTrue
	if code, text := run("path example-com"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	for args, says := range map[string]string{"path arecord/www": "arecord/www is no zone", "path": "accepts 1 arg", "path example-com -A": "unknown shorthand flag"} {
		if code, text := run(args); code != 2 || !strings.Contains(text, says) {
			t.Errorf("%s: exit code %d: %s", args, code, text)
		}
	}
}
