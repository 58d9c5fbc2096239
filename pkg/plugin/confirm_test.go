package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// heldZone answers for a zone whose guard holds the removal of two names back, and the change of a third one.
type heldZone struct {
	*testing.T
	zone     v1beta1.DNSZone
	statuses []v1alpha1.SyncStatus
	// beforePatch happens between what the user has seen and what the command writes.
	beforePatch func(*v1beta1.DNSZone)
	patches     int
}

const heldPlan = "1f7d0c9be2a45b6d8f3e1c20a9b7d645"

func newHeldZone(t *testing.T) *heldZone {
	t.Helper()
	h := &heldZone{T: t}
	h.zone.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "DNSZone"}
	h.zone.ObjectMeta = metav1.ObjectMeta{Namespace: "dns", Name: "example-com", UID: "1", ResourceVersion: "7"}
	h.zone.Spec.ZoneName = "example.com"
	h.zone.Status.HeldPlan = heldPlan
	h.zone.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Held", Message: "RRsets that would be removed: 2"}}
	set := func(name string, rdata ...string) v1alpha1.RRset {
		return v1alpha1.RRset{Name: name + ".example.com.", Type: "A", TTL: new(int64(300)), Rdata: rdata}
	}
	held := func(kind, name string, have, want v1alpha1.RRset) {
		s := object("dns", kind, name, "example.com", "dns-primary-0", "dns-secondary-0")
		s.ObjectRef.Namespace = "dns"
		s.RRsets = []v1alpha1.RRset{want}
		for i := range s.Servers {
			s.Servers[i].State, s.Servers[i].Observed = v1alpha1.StateHeld, []v1alpha1.RRset{have}
		}
		h.statuses = append(h.statuses, s)
	}
	held("DNSZone", "example-com", set("api", "192.0.2.1"), set("api"))
	h.statuses[0].Servers[0].Records = &v1alpha1.RecordCounts{OutOfSync: 4}
	held("ARecord", "api", set("api", "192.0.2.1"), set("api"))
	held("ARecord", "old", set("old", "192.0.2.2"), set("old"))
	held("ARecord", "www", set("www", "192.0.2.3"), set("www", "192.0.2.4"))
	h.statuses = append(h.statuses, object("dns", "ARecord", "mail", "example.com", "dns-primary-0"))
	return h
}

// ServeHTTP answers as kube-apiserver does.
func (h *heldZone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const zones = "/apis/bindy.firestoned.io/v1beta1/namespaces/dns/dnszones/"
	switch {
	case r.URL.Path == zones+"example-com" && r.Method == http.MethodGet:
		h.write(w, http.StatusOK, h.zone)
	case r.URL.Path == zones+"example-com" && r.Method == http.MethodPatch:
		h.patch(w, r)
	case strings.HasSuffix(r.URL.Path, "/namespaces/dns/syncstatuses/dnszone.example-com"):
		s := h.statuses[0]
		s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "SyncStatus"
		h.write(w, http.StatusOK, s)
	case strings.HasSuffix(r.URL.Path, "/v1alpha1/syncstatuses"): // of all namespaces
		err := apierrors.NewForbidden(v1alpha1.Resource(statusResource), "", nil)
		h.write(w, http.StatusForbidden, err.Status())
	case strings.HasSuffix(r.URL.Path, "/namespaces/dns/syncstatuses"):
		if selector := r.URL.Query().Get("fieldSelector"); selector != "zone=example.com" {
			h.Errorf("the field selector is %q", selector)
		}
		list := v1alpha1.SyncStatusList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SyncStatusList"}, Items: h.statuses}
		h.write(w, http.StatusOK, list)
	default:
		h.write(w, http.StatusNotFound, apierrors.NewNotFound(v1beta1.Resource("dnszones"), "x").Status())
	}
}

func (h *heldZone) patch(w http.ResponseWriter, r *http.Request) {
	if h.beforePatch != nil {
		h.beforePatch(&h.zone)
		h.beforePatch = nil
	}
	h.patches++
	var patch struct{ Metadata metav1.ObjectMeta }
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &patch) != nil || patch.Metadata.ResourceVersion == "" {
		h.Errorf("%v in %s", err, body)
	}
	if patch.Metadata.ResourceVersion != h.zone.ResourceVersion {
		h.write(w, http.StatusConflict, apierrors.NewConflict(v1beta1.Resource("dnszones"), "example-com", nil).Status())
		return
	}
	only := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"resourceVersion":%q}}`, v1beta1.ConfirmAnnotation, patch.Metadata.Annotations[v1beta1.ConfirmAnnotation], patch.Metadata.ResourceVersion)
	if string(body) != only {
		h.Errorf("the patch touches more than the confirmation: %s, want %s", body, only)
	}
	h.zone.Annotations = patch.Metadata.Annotations
	h.write(w, http.StatusOK, h.zone)
}

func (h *heldZone) write(w http.ResponseWriter, code int, answer any) {
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Error(err)
	}
}

// run runs the plugin with what a user types.
func (h *heldZone) run(typed, args string) (int, string) {
	h.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	kubeconfig := filepath.Join(h.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		h.Fatal(err)
	}
	h.Setenv("KUBECONFIG", kubeconfig)
	root := NewCommand()
	root.SetArgs(strings.Fields("confirm " + args + " -n dns -s " + server.URL))
	var out bytes.Buffer
	root.SetIn(strings.NewReader(typed))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(h.Context())
	code := exitCodeOf(err)
	if code == exitError {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return code, out.String()
}

const heldTable = `ZONE              CHANGE     NAME               TYPE   TTL   VALUES                  OBJECTS
dns/example-com   vanishes   api.example.com.   A      300   192.0.2.1               ARecord dns/api
dns/example-com   vanishes   old.example.com.   A      300   192.0.2.2               ARecord dns/old
dns/example-com   changes    www.example.com.   A      300   192.0.2.3 → 192.0.2.4   ARecord dns/www
3 RRsets in 1 zone: 0 appear, 1 change, 2 vanish
and 1 more that no object declares which you may read
the guard of DNSZone dns/example-com holds this back: plan ` + heldPlan + "\n"

// confirm shows what a guard holds back, and confirms it if the user says so and it is still the same by then.
func TestConfirm(t *testing.T) {
	const done = "plan " + heldPlan + " of DNSZone dns/example-com is confirmed\n"
	const question = "Confirm it? Type yes: "
	other := func(z *v1beta1.DNSZone) {
		z.ResourceVersion, z.Status.HeldPlan = "8", "0123456789abcdef0123456789abcdef"
	}
	for name, tc := range map[string]struct {
		args, typed string
		change      func(*heldZone)
		code        int
		output      string
		confirmed   bool
	}{
		"the user says yes":     {"example-com", "yes\n", nil, 0, heldTable + question + done, true},
		"the user says no":      {"dnszone/example-com", "y\n", nil, 1, heldTable + question + "nothing is confirmed\n", false},
		"nobody is there":       {"example-com", "", nil, 1, heldTable + question + "\nnothing is confirmed\n", false},
		"without a question":    {"example-com --yes", "", nil, 0, heldTable + done, true},
		"a plan that is named":  {"example-com --plan=" + heldPlan, "", nil, 0, heldTable + done, true},
		"another plan is named": {"example-com --plan=f00d", "", nil, 2, "error: nothing is confirmed: the guard of DNSZone dns/example-com holds back plan " + heldPlan + ", and not f00d\n", false},
		"the plan has changed": {"example-com", "yes\n", func(h *heldZone) { h.beforePatch = other }, 2,
			heldTable + question + "error: nothing is confirmed: the guard of DNSZone dns/example-com holds back plan 0123456789abcdef0123456789abcdef, and not " + heldPlan + "\n", false},
		"the hold has ended": {"example-com", "yes\n", func(h *heldZone) {
			h.beforePatch = func(z *v1beta1.DNSZone) { z.ResourceVersion, z.Status.HeldPlan = "8", "" }
		}, 2, heldTable + question + "error: nothing is confirmed: the guard of DNSZone dns/example-com holds nothing back, and not plan " + heldPlan + "\n", false},
		"the zone has changed otherwise": {"example-com -y", "", func(h *heldZone) {
			h.beforePatch = func(z *v1beta1.DNSZone) { z.ResourceVersion = "8" }
		}, 0, heldTable + done, true},
		"it is confirmed already": {"example-com", "", func(h *heldZone) {
			h.zone.Annotations = map[string]string{v1beta1.ConfirmAnnotation: heldPlan}
		}, 0, strings.Replace(heldTable, "the guard of DNSZone dns/example-com holds this back: plan "+heldPlan, "plan "+heldPlan+" of DNSZone dns/example-com is confirmed already", 1), true},
		"nothing is held back": {"example-com", "", func(h *heldZone) { h.zone.Status.HeldPlan = "" }, 0, "the guard of DNSZone dns/example-com holds nothing back\n", false},
		"no server shows it yet": {"example-com -y", "", func(h *heldZone) {
			h.statuses = []v1alpha1.SyncStatus{object("dns", "DNSZone", "example-com", "example.com")}
		}, 0,
			"RRsets that would be removed: 2\nthe guard of DNSZone dns/example-com holds this back: plan " + heldPlan + "\n" + done, true},
		"no such zone": {"other", "", nil, 2, "error: there is no DNSZone other in namespace dns\n", false},
		"no zone":      {"arecord/www", "", nil, 2, "error: arecord/www is no zone: name a DNSZone\n", false},
		"everywhere":   {"example-com -A", "", nil, 2, "error: unknown shorthand flag: 'A' in -A\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeldZone(t)
			if tc.change != nil {
				tc.change(h)
			}
			code, output := h.run(tc.typed, tc.args)
			if code != tc.code || output != tc.output {
				t.Errorf("exit code %d, want %d, with\n%s", code, tc.code, output)
			}
			if confirmed := h.zone.Annotations[v1beta1.ConfirmAnnotation] == heldPlan; confirmed != tc.confirmed {
				t.Errorf("the annotations are %v after %d patches", h.zone.Annotations, h.patches)
			}
		})
	}
}
