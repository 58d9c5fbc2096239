package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/refresh"
	"github.com/lockstep-dns/lockstep/apiserver/registry"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
	"github.com/lockstep-dns/lockstep/pkg/version"
	"github.com/lockstep-dns/lockstep/test/openapi"
)

// handler is the server's own, without authentication, while kube-apiserver is out of reach: whatever answers here
// waits for nobody.
func handler(t *testing.T) http.Handler {
	t.Helper()
	s := lonely(t)
	s.Generic.PrepareRun()
	s.undocumentCommonPaths()
	return s.Generic.Handler
}

// lonely is that server.
func lonely(t *testing.T) *Server {
	t.Helper()
	generic := server.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.ExternalAddress = "127.0.0.1:443"
	generic.LoopbackClientConfig = &rest.Config{Host: "127.0.0.1:443"}
	generic.ClientConfig = &rest.Config{Host: "https://127.0.0.1:1"}
	generic.OpenAPIConfig, generic.OpenAPIV3Config = openAPIConfigs()
	s, err := (&Config{Generic: generic, Verdicts: registry.Options{Options: refresh.Options{Options: ask.Options{Deadline: time.Second}}}}).Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// metered is the one server of the process whose metrics are registered: all share the registry of Kubernetes' libraries.
var metered sync.Once

func TestMetricsAreServedBesideKubernetesOwn(t *testing.T) {
	metered.Do(func() {
		if err := registerMetrics(lonely(t).Verdicts); err != nil {
			t.Fatal(err)
		}
	})
	pods := &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, nil }}
	watched := cache.ToListerWatcherWithContext(cachehealth.NewMonitor().Watch(&corev1.Pod{}, pods))
	if _, err := watched.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	h := handler(t)
	send(t, h, "GET", group+"/namespaces/dns/syncstatuses", runtime.ContentTypeJSON)
	if _, _, text := send(t, h, "GET", "/version", runtime.ContentTypeJSON); !strings.Contains(text, fmt.Sprintf(`"gitVersion": %q`, version.Module())) {
		t.Errorf("/version answers %s", text)
	}
	_, _, body := send(t, h, "GET", "/metrics", "*/*")
	for _, want := range []string{"\nlockstep_syncstatus_mirrors 0\n", "\nlockstep_syncstatus_watches 0\n", `apiserver_request_total{code="503"`, "\nlockstep_cache_synced{type=\"Pod\"} 1\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not among the metrics", want)
		}
	}
}

func send(t *testing.T, h http.Handler, method, path, accept string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.Header.Set("Accept", accept)
	r.Header.Set("Content-Type", runtime.ContentTypeJSON)
	w := httptest.NewRecorder()
	began := time.Now()
	h.ServeHTTP(w, r)
	t.Logf("%s %.200s took %s", method, path, time.Since(began))
	return w.Code, w.Header(), w.Body.String()
}

const group = "/apis/sync.bindy.firestoned.io/v1alpha1"

func TestDiscoveryWaitsForNobody(t *testing.T) {
	h := handler(t)
	code, _, body := send(t, h, "GET", group, runtime.ContentTypeJSON)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range list.APIResources {
		got[r.Name] = fmt.Sprintf("%s %s %v %v %v", r.Kind, r.SingularName, []string(r.Verbs), r.ShortNames, r.Categories)
	}
	if want := "SyncStatus syncstatus [get list watch] [sync] [dns]"; got["syncstatuses"] != want {
		t.Errorf("syncstatuses: %s, want %s", got["syncstatuses"], want)
	}
	for _, r := range []string{"dnszones", "bind9instances", "bind9clusters", "arecords", "aaaarecords", "cnamerecords", "nsrecords", "txtrecords", "mxrecords", "srvrecords", "caarecords", "ptrrecords", "dnsendpoints"} {
		if want := "SyncStatus  [get] [] []"; got[r+"/syncstatus"] != want {
			t.Errorf("%s/syncstatus: %s, want %s", r, got[r+"/syncstatus"], want)
		}
		// One kind must lead to one resource, or clients that map kinds to resources are misled.
		if strings.HasPrefix(got[r], "SyncStatus") || !strings.Contains(got[r], "[]") {
			t.Errorf("%s: %s, want a kind of its own and no verbs", r, got[r])
		}
	}
	for path, accept := range map[string]string{
		"/apis":       "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		"/openapi/v3": runtime.ContentTypeJSON,
	} {
		if code, _, body := send(t, h, "GET", path, accept); code != http.StatusOK || !strings.Contains(body, v1alpha1.GroupName) {
			t.Errorf("%s: %d %s, want our group in it", path, code, body)
		}
	}
	if code, _, body := send(t, h, "GET", group+"/namespaces/dns/syncstatuses", runtime.ContentTypeJSON); code != http.StatusServiceUnavailable {
		t.Errorf("a list before the caches are filled: %d %s, want 503 rather than an empty list", code, body)
	}
}

func TestEveryOpenAPIReferenceResolves(t *testing.T) {
	h := handler(t)
	for _, path := range []string{"/openapi/v2", "/openapi/v3" + group} {
		t.Run(path, func(t *testing.T) {
			code, _, body := send(t, h, "GET", path, runtime.ContentTypeJSON)
			if code != http.StatusOK {
				t.Fatalf("%d %s", code, body)
			}
			var document map[string]any
			if err := json.Unmarshal([]byte(body), &document); err != nil {
				t.Fatal(err)
			}
			refs := openapi.References(document)
			if len(refs) < 20 {
				t.Fatalf("only %d references: not the document that was expected", len(refs))
			}
			for _, ref := range refs {
				if !openapi.Resolves(document, ref) {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			ours := "#/components/schemas/"
			if path == "/openapi/v2" {
				ours = "#/definitions/"
			}
			if !openapi.Resolves(document, ours+"io.firestoned.bindy.sync.v1alpha1.SyncStatus") {
				t.Error("SyncStatus is not defined")
			}
			if strings.Contains(body, "lockstep-dns") {
				t.Error("a definition is named after a Go package")
			}
		})
	}
}

// kube-apiserver hands requests for a document to any server that lists one under its path.
func TestOnlyOurOpenAPIIsListed(t *testing.T) {
	_, _, body := send(t, handler(t), "GET", "/openapi/v3", runtime.ContentTypeJSON)
	var index struct{ Paths map[string]any }
	if err := json.Unmarshal([]byte(body), &index); err != nil {
		t.Fatal(err)
	}
	want := []string{"apis/" + v1alpha1.GroupName, strings.TrimPrefix(group, "/")}
	if got := slices.Sorted(maps.Keys(index.Paths)); !slices.Equal(got, want) {
		t.Errorf("documents of %q, want %q", got, want)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	_, _, body := send(t, handler(t), "GET", "/openapi/v3"+group, runtime.ContentTypeJSON)
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, schema := range document.Components.Schemas {
		if !strings.HasPrefix(name, "io.firestoned.bindy.sync.") {
			continue
		}
		for field, p := range schema.Properties {
			checked++
			if p.Description == "" {
				t.Errorf("%s.%s has no description for kubectl explain", name, field)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d fields checked", checked)
	}
}

func TestWritesAreRefusedInPlainWords(t *testing.T) {
	h := handler(t)
	const readOnly = "SyncStatus is read-only: it is computed from the DNS servers' answers and never stored. Change "
	for request, want := range map[string]string{
		"POST /namespaces/dns/syncstatuses":                           readOnly + "the object that it is about, in group bindy.firestoned.io or externaldns.k8s.io",
		"PUT /namespaces/dns/syncstatuses/arecord.www":                readOnly + "ARecord www, in group bindy.firestoned.io",
		"PATCH /namespaces/dns/syncstatuses/dnsendpoint.shop.example": readOnly + "DNSEndpoint shop.example, in group externaldns.k8s.io",
		"DELETE /namespaces/dns/syncstatuses/nonsense":                readOnly + "the object that it is about, in group bindy.firestoned.io or externaldns.k8s.io",
		"DELETE /namespaces/dns/syncstatuses":                         readOnly + "the object that it is about, in group bindy.firestoned.io or externaldns.k8s.io",
		"PUT /namespaces/dns/arecords/www/syncstatus":                 readOnly + "ARecord www, in group bindy.firestoned.io",
		"DELETE /namespaces/dns/bind9instances/a":                     readOnly + "Bind9Instance a, in group bindy.firestoned.io",
		"GET /namespaces/dns/mxrecords/mail":                          "group sync.bindy.firestoned.io has of mxrecords only the subresource syncstatus of one object by its name; the objects themselves are in group bindy.firestoned.io",
		"GET /namespaces/dns/dnsendpoints":                            "group sync.bindy.firestoned.io has of dnsendpoints only the subresource syncstatus of one object by its name; the objects themselves are in group externaldns.k8s.io",
		"GET /dnszones?watch=1":                                       "group sync.bindy.firestoned.io has of dnszones only the subresource syncstatus of one object by its name; the objects themselves are in group bindy.firestoned.io",
	} {
		method, path, _ := strings.Cut(request, " ")
		allowed := "GET"
		if method == allowed {
			allowed = ""
		}
		code, header, body := send(t, h, method, group+path, runtime.ContentTypeJSON)
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Errorf("%s: %v in %s", request, err, body)
		}
		if told := header.Values("Allow"); code != http.StatusMethodNotAllowed || status.Message != want || !slices.Equal(told, []string{allowed}) {
			t.Errorf("%s: %d %+v", request, code, status)
		}
	}
}

func TestClientsThatPreferOtherEncodingsGetJSON(t *testing.T) {
	h := handler(t)
	for _, accept := range []string{
		"application/vnd.kubernetes.protobuf,application/json", "application/cbor,application/json", "application/json", "*/*", "",
	} {
		_, header, body := send(t, h, "GET", group+"/namespaces/dns/syncstatuses", accept)
		if got := header.Get("Content-Type"); got != runtime.ContentTypeJSON {
			t.Errorf("Accept %q: %s %.60s, want JSON", accept, got, body)
		}
	}
	for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/cbor", "text/csv"} {
		if code, _, _ := send(t, h, "GET", group+"/namespaces/dns/syncstatuses", accept); code != http.StatusNotAcceptable {
			t.Errorf("nothing but %s: %d, want 406", accept, code)
		}
	}
}

func TestWhatCannotBeToldIsRefusedInPlainWords(t *testing.T) {
	h := handler(t)
	future := fmt.Sprint(uint64(time.Now().Add(time.Hour).UnixMicro()) << 11)
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprint(i))
	}
	for query, want := range map[string]struct {
		code int
		says string
	}{
		"fieldSelector=spec.x%3D1":                                         {400, "status.phase, status.inSync"},
		"fieldSelector=status.phase%3DInsync":                              {400, `status.phase is never \"Insync\": only InSync, Propagating`},
		"fieldSelector=status.inSync!%3Dyes":                               {400, "only true, false"},
		"fieldSelector=kind%3Darecord":                                     {400, `kind is never \"arecord\": only DNSZone, `},
		"watch=1&fieldSelector=kind!%3DPod":                                {400, `kind is never \"Pod\": only DNSZone, `},
		"labelSelector=%3D%3D":                                             {400, "expected:"},
		"resourceVersion=x":                                                {400, "is not one of this API's"},
		"resourceVersion=" + future:                                        {504, "Too large resource version"},
		"resourceVersion=" + future + "&resourceVersionMatch=NotOlderThan": {504, "ResourceVersionTooLarge"},
		"resourceVersion=7&resourceVersionMatch=Exact":                     {410, "the servers answer for the present"},
		"resourceVersion=7&continue=x":                                     {400, "together with continue"},
		"resourceVersionMatch=Exact":                                       {422, "unless resourceVersion is provided"},
		"resourceVersion=7&resourceVersionMatch=Newest":                    {422, "NotOlderThan"},
		"sendInitialEvents=true":                                           {422, "forbidden for list"},
		"watch=1&sendInitialEvents=true":                                   {422, "requires setting resourceVersionMatch"},
		"watch=1&resourceVersionMatch=NotOlderThan":                        {422, "unless sendInitialEvents is provided"},
		"watch=1&fieldSelector=spec.x%3D1":                                 {400, "status.phase"},
		"watch=1&resourceVersion=x":                                        {400, "is not one of this API's"},
		"labelSelector=a+in+(" + strings.Join(values, ",") + ")":           {400, "1001 requirements and values: at most 1000"},
		"watch=1&fieldSelector=" + strings.Repeat("zone!%3Da,", 1001):      {400, "1001 requirements and values: at most 1000"},
		"watch=1&allowWatchBookmarks=true&timeoutSeconds=x":                {400, "invalid syntax"},
		"limit=x": {400, "invalid syntax"},
	} {
		for _, scope := range []string{"", "/namespaces/dns"} {
			code, _, body := send(t, h, "GET", group+scope+"/syncstatuses?"+query, runtime.ContentTypeJSON)
			if code != want.code || !strings.Contains(body, want.says) {
				t.Errorf("%.100s: %d %s, want %d with %q", query, code, body, want.code, want.says)
			}
		}
	}
	for _, path := range []string{"/namespaces/dns/syncstatuses/arecord.www", "/namespaces/dns/arecords/www/syncstatus"} {
		if code, _, body := send(t, h, "GET", group+path+"?resourceVersion=x", runtime.ContentTypeJSON); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	// What can be told is not refused, only not known yet.
	for _, query := range []string{
		"", "limit=-1", "limit=9223372036854775807", "resourceVersion=0", "resourceVersion=7", "resourceVersion=7&resourceVersionMatch=NotOlderThan",
		"fieldSelector=status.phase!%3DInSync,kind%3DARecord,zone%3DExample.COM.,metadata.name%3Da,metadata.namespace%3Db,status.failureReason!%3D,status.inSync%3Dfalse",
		"watch=1&timeoutSeconds=-1", "watch=1&timeoutSeconds=9223372036854775807", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	} {
		if code, _, body := send(t, h, "GET", group+"/namespaces/dns/syncstatuses?"+query, runtime.ContentTypeJSON); code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}

func TestReadinessIsAboutCaches(t *testing.T) {
	h := handler(t)
	if code, _, body := send(t, h, "GET", "/readyz?verbose", "*/*"); code == http.StatusOK || !strings.Contains(body, "informers-synced") {
		t.Errorf("ready without caches: %d %s", code, body)
	}
	if code, _, body := send(t, h, "GET", "/livez?exclude=poststarthook", "*/*"); strings.Contains(body, "informers-synced") {
		t.Errorf("liveness depends on the cluster: %d %s", code, body)
	}
}

func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string // in the error
	}{
		"defaults": {nil, nil},
		"all at once": {
			[]string{"--namespace=UPPER", "--max-age=-1s", "--deadline=1ms", "--watch-interval=0s", "--verify-interval=1ms", "--secure-port=-1"},
			[]string{"--namespace", "--max-age", "--deadline", "--watch-interval", "--verify-interval", "--secure-port"},
		},
		"too much": {
			[]string{"--max-age=61s", "--deadline=31s", "--watch-interval=2m", "--verify-interval=25h"},
			[]string{"--max-age", "--deadline", "--watch-interval", "--verify-interval"},
		},
		"vantages": {
			[]string{"--vantage=berlin=http://192.0.2.1:8453", "--vantage=a b=https://192.0.2.1:8453", "--vantage=rome=https://192.0.2.1"},
			[]string{`--vantage="berlin=http`, `--vantage="a b=https`, `--vantage="rome=https`},
		},
		"two of a name": {[]string{"--vantage=rome=https://192.0.2.1:8453", "--vantage=rome=https://192.0.2.2:8453"}, []string{`--vantage="rome=https://192.0.2.2:8453": there are two`}},
		"good vantages": {[]string{"--vantage=rome=https://192.0.2.1:8453", "--vantage=oslo=https://[2001:db8::1]:8453"}, nil},
		"the bounds":    {[]string{"--max-age=0s", "--deadline=30s", "--watch-interval=50ms", "--verify-interval=0s"}, nil},
	} {
		o := NewOptions()
		fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		err := o.Validate()
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, flag := range tc.want {
			if err != nil && !strings.Contains(err.Error(), flag) {
				t.Errorf("%s: %s is not named in %v", name, flag, err)
			}
		}
	}
}
