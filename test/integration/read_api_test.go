package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// plainAPI asks kube-apiserver as a program does that has no library: for the SyncStatuses of the fixture's namespace.
func (f *fixture) plainAPI(ctx context.Context, query, accept string) *http.Response {
	f.Helper()
	config := kube.Config(f)
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		f.Fatal(err)
	}
	url := config.Host + "/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/" + f.namespace + "/syncstatuses?" + query
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	response, err := c.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	return response
}

// page is one page of a plain list.
func (f *fixture) page(query, accept string) (code int, list syncv1.SyncStatusList, said string) {
	f.Helper()
	response := f.plainAPI(f.Context(), query, accept)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}
	if response.Header.Get("Content-Type") == "application/json" {
		_ = json.Unmarshal(body, &list) // an error leaves it empty
	}
	return response.StatusCode, list, string(body)
}

// What clients of Kubernetes take for granted holds through kube-apiserver, too.
func (f *fixture) testAPI() {
	f.runSub("encodings", func(f *fixture) {
		for accept, want := range map[string]int{
			"application/vnd.kubernetes.protobuf,application/json":       http.StatusOK,
			"application/cbor;q=1,application/json;q=0.5":                http.StatusOK,
			"application/vnd.kubernetes.protobuf":                        http.StatusNotAcceptable,
			"application/json;as=Table;v=v1;g=meta.k8s.io,text/whatever": http.StatusOK,
		} {
			if code, _, said := f.page("limit=1", accept); code != want {
				f.Errorf("Accept %s: %d %.200s, want %d", accept, code, said, want)
			}
		}
	})
	f.runSub("pages", func(f *fixture) {
		want := strings.Fields(f.kubectl("get", "syncstatus", "-o", "name"))
		if got := strings.Fields(f.kubectl("get", "syncstatus", "-o", "name", "--chunk-size=1")); !slices.Equal(got, want) || len(got) < 5 {
			f.Errorf("in pages of one: %v, want %v", got, want)
		}
		var got []string
		next, first := "", ""
		for more := true; more; more = next != "" {
			_, list, said := f.page("limit=2&continue="+next, "application/json")
			if len(list.Items) == 0 || len(list.Items) > 2 || first != "" && list.ResourceVersion != first {
				f.Fatalf("a page of two: %.500s", said)
			}
			for _, s := range list.Items {
				got = append(got, "syncstatus.sync.bindy.firestoned.io/"+s.Name)
			}
			if next, first = list.Continue, list.ResourceVersion; next != "" && (list.RemainingItemCount == nil || int(*list.RemainingItemCount) != len(want)-len(got)) {
				f.Errorf("after %d of %d: %v", len(got), len(want), list.RemainingItemCount)
			}
		}
		if !slices.Equal(got, want) {
			f.Errorf("in pages of two: %v, want %v", got, want)
		}
	})
	f.runSub("begins with all and a bookmark", func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		response := f.plainAPI(ctx, "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=kind%3DARecord",
			"application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch,application/json")
		defer response.Body.Close()
		var got []string
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			var e struct {
				Type   string
				Object metav1.PartialObjectMetadata
			}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				f.Fatalf("%v in %s", err, lines.Text())
			}
			got = append(got, e.Type+" "+e.Object.Name)
			if e.Type == "BOOKMARK" {
				if e.Object.Annotations[metav1.InitialEventsAnnotationKey] != "true" || e.Object.ResourceVersion == "" {
					f.Errorf("the bookmark is %+v", e.Object)
				}
				break
			}
		}
		if want := []string{"ADDED arecord.www", "BOOKMARK "}; !slices.Equal(got, want) {
			f.Errorf("%q, want %q", got, want)
		}
	})
	f.runSub("refusals", func(f *fixture) {
		for args, want := range map[string]string{
			"get syncstatus --field-selector spec.zone=x":          "not a known field selector: only metadata.name",
			"get syncstatus --field-selector status.phase=Insync":  "only InSync, Propagating",
			"get syncstatus --field-selector kind=arecord":         "only DNSZone, DNSEndpoint",
			"get arecords.sync.bindy.firestoned.io www":            "only the subresource syncstatus",
			"label syncstatus arecord.www a=b":                     "Change ARecord www, in group bindy.firestoned.io",
			"annotate syncstatus arecord.www a=b --dry-run=server": "read-only",
			"delete syncstatus --all":                              "read-only",
			"get syncstatus nonsense":                              "not found: the name of a SyncStatus is its object's kind",
		} {
			out, err := kube.TryKubectl(f, "", append([]string{"-n", f.namespace}, strings.Fields(args)...)...)
			if err == nil || !strings.Contains(out, want) {
				f.Errorf("kubectl %s: %v %s, want %q", args, err, out, want)
			}
		}
	})
	f.runSub("describe and sort", func(f *fixture) {
		for args, want := range map[string][]string{
			"describe syncstatus arecord.www":                        {"192.0.2.1", "dns-secondary-0-0", "Propagated"},
			"get syncstatus -o name --sort-by=.objectRef.kind":       {"arecord.www", "dnszone.main"},
			"get syncstatus arecord.www -o jsonpath={.status.phase}": {"InSync"},
			"get sync,arecords -o name":                              {"syncstatus.sync.bindy.firestoned.io/arecord.www", "arecord.bindy.firestoned.io/www"},
		} {
			out, at := f.kubectl(strings.Fields(args)...), 0
			for _, w := range want {
				i := strings.Index(out[at:], w)
				if i < 0 {
					f.Errorf("kubectl %s: no %q in the order of %q:\n%s", args, w, want, out)
					break
				}
				at += i
			}
		}
	})
}
