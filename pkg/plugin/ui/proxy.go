package ui

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

const (
	namePattern = `[a-z0-9]([a-z0-9.-]*[a-z0-9])?`
	eventKind   = "involvedObject.kind"
	eventName   = "involvedObject.name"
)

var (
	statusPath = regexp.MustCompile(`^/apis/` + regexp.QuoteMeta(v1alpha1.SchemeGroupVersion.String()) +
		`/(namespaces/` + namePattern + `/)?syncstatuses(/` + namePattern + `)?$`)
	eventPath = regexp.MustCompile(`^/api/v1/namespaces/` + namePattern + `/events$`)
	// listParameters are those of list and watch that the page uses.
	listParameters = []string{
		"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "watch",
	}
)

// isAllowed decides which requests the page may send to the cluster: reads of SyncStatus, and of the events of one object that has a
// SyncStatus.
func isAllowed(r *http.Request) bool {
	// A path with escapes could mean something else to the next server. Names have nothing to escape.
	if r.Method != http.MethodGet || r.URL.RawPath != "" || r.URL.EscapedPath() != r.URL.Path || r.Header.Get("Upgrade") != "" {
		return false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return false
	}
	for name, values := range query {
		if !slices.Contains(listParameters, name) || len(values) != 1 {
			return false
		}
	}
	return statusPath.MatchString(r.URL.Path) || eventPath.MatchString(r.URL.Path) && selectsObject(query.Get("fieldSelector"))
}

// selectsObject reports whether a field selector of events leaves only those of one object that has a SyncStatus.
func selectsObject(selector string) bool {
	s, err := fields.ParseSelector(selector)
	if err != nil {
		return false
	}
	kind, _ := s.RequiresExactMatch(eventKind)
	name, _ := s.RequiresExactMatch(eventName)
	return name != "" && slices.ContainsFunc(subject.Kinds(), func(k subject.Kind) bool { return k.Kind == kind })
}

// newProxy forwards allowed requests to the cluster with the rights of the config.
func newProxy(config *rest.Config) (http.Handler, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	server, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // The page reports a watch that breaks.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			// No header of the browser reaches the cluster: not the cookie, and none that impersonates.
			r.Out.Header = http.Header{"Accept": {"application/json"}}
			r.Out.Body = http.NoBody
		},
		ModifyResponse: func(r *http.Response) error {
			kind := r.Header.Get("Content-Type")
			r.Header = http.Header{"Content-Type": {kind}}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "cannot reach the cluster: "+err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAllowed(r) {
			http.Error(w, "only reads of SyncStatus and of the events of its object are forwarded", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}), nil
}
