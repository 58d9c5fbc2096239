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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// In all namespaces, a name may be in several zones of one name, each with servers of its own.
func TestChooseByName(t *testing.T) {
	in := func(namespace, kind, zone string) v1alpha1.SyncStatus {
		s := object(namespace, kind, "x", zone)
		if kind == "ARecord" {
			s.RRsets = []v1alpha1.RRset{{Name: "www.example.com.", Type: "A"}}
		}
		return s
	}
	all := []v1alpha1.SyncStatus{
		in("inside", "ARecord", "example.com"), in("inside", "DNSZone", "example.com"), in("inside", "DNSZone", "com"),
		in("outside", "ARecord", "example.com"), in("outside", "DNSZone", "example.com"),
	}
	for name, want := range map[string]string{
		"www.example.com.": "inside/arecord.x outside/arecord.x", "other.example.com.": "inside/dnszone.x outside/dnszone.x", "example.net.": "",
	} {
		var got []string
		for _, s := range chooseByName(all, name, "") {
			got = append(got, s.Namespace+"/"+s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// chain finds the object by the DNS name, shows each link once, says in words which is broken, and ends with 1 unless all are accepted.
func TestChain(t *testing.T) {
	expires := new(metav1.NewTime(time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC)))
	keys := []v1alpha1.ChainKey{{KeyTag: 19507, Algorithm: "ECDSAP256SHA256", Role: "KSK"}}
	broken := false
	statusOf := func(name string) *v1alpha1.SyncStatus {
		kind := "DNSZone"
		if strings.HasPrefix(name, "arecord.") {
			kind = "ARecord"
		}
		s := object("dns", kind, name[strings.Index(name, ".")+1:], "example.com")
		s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "SyncStatus"
		if kind == "ARecord" {
			s.RRsets = []v1alpha1.RRset{{Name: "www.example.com.", Type: "A"}}
		}
		condition := metav1.Condition{Type: v1alpha1.ConditionValidated, Status: "True", Reason: "Secure", Message: "2 of 2 servers Secure"}
		s.Chain = []v1alpha1.ChainLink{
			{Name: "example.com.", Type: "DS", Security: "Secure", Keys: []v1alpha1.ChainKey{{KeyTag: 19507, Algorithm: "ECDSAP256SHA256", Role: "SHA256"}}, KeyTags: []int32{1}},
			{Server: "a-0", Name: "example.com.", Type: "DNSKEY", TrustedBy: "ParentDS", Keys: keys, Security: "Secure", SignaturesExpireAt: expires, KeyTags: []int32{19507}},
			{Server: "a-0", Name: "www.example.com.", Type: "A", Security: "Secure", SignaturesExpireAt: expires, KeyTags: []int32{19507}},
		}
		if broken {
			condition.Status, condition.Reason = "False", "Bogus"
			s.Chain[2] = v1alpha1.ChainLink{Server: "a-0", Name: "www.example.com.", Type: "A", Security: "Bogus", SecurityCause: "Signature Expired", Message: "the signature\x1b[2J expired"}
		}
		s.Status.Conditions = []metav1.Condition{condition}
		return &s
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch _, name, _ := strings.Cut(r.URL.Path, "/namespaces/dns/syncstatuses"); name {
		case "":
			list := &v1alpha1.SyncStatusList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SyncStatusList"}}
			for _, name := range []string{"arecord.www", "arecord.www-too", "dnszone.example-com"} {
				s := statusOf(name)
				s.Chain = nil
				list.Items = append(list.Items, *s)
			}
			_ = json.NewEncoder(w).Encode(list)
		case "/arecord.www", "/dnszone.example-com":
			_ = json.NewEncoder(w).Encode(statusOf(name[1:]))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	run := func(args string) (int, string) {
		var out bytes.Buffer
		code := Run(t.Context(), append(strings.Fields(args), "--server="+server.URL, "-n", "dns"), &out, &out)
		return code, out.String()
	}
	const good = `LINK                 SERVER   TRUSTED BY   KEYS                           SIGNED BY   SECURITY   EXPIRES
example.com. DS                            SHA256 19507 ECDSAP256SHA256   1           Secure
example.com. DNSKEY  a-0      ParentDS     KSK 19507 ECDSAP256SHA256      19507       Secure     2026-12-04T12:00:00Z
www.example.com. A   a-0                                                  19507       Secure     2026-12-04T12:00:00Z
`
	for _, args := range []string{"chain www.example.com", "chain WWW.example.com. a", "chain arecord/www", "chain arecord.www"} {
		if code, out := run(args); code != exitOK || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(good+"arecord.www: Secure (2 of 2 servers Secure)"), " ") {
			t.Errorf("%s: %d\n%s", args, code, out)
		}
	}
	if code, out := run("chain nothing.www.example.com"); code != exitOK || !strings.Contains(out, "dnszone.example-com: Secure") {
		t.Errorf("a name that nobody declares: %d\n%s", code, out)
	}
	for _, args := range []string{"chain", "chain www.example.org", "chain www.example.com NONSENSE", "chain arecord/other", "chain arecord/www A", "chain arecord"} {
		if code, out := run(args); code != exitError {
			t.Errorf("%s: %d\n%s", args, code, out)
		}
	}
	broken = true
	code, out := run("chain www.example.com --explain --color=always")
	if code != exitNotInSync || !strings.Contains(out, "\x1b[31mbroken: www.example.com. A on a-0: Signature Expired: the signature") || strings.Contains(out, "\x1b[2J") ||
		!strings.Contains(out, "\x1b[31mwww.example.com. A") || !strings.Contains(out, "Signature Expired: whoever signs the zone has to sign it anew") {
		t.Errorf("broken: %d\n%q", code, out)
	}
}
