package ui

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const statuses = "/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/dns/syncstatuses"

// testServer returns a server whose cluster records what reaches it.
func testServer(t *testing.T) (s *Server, reached *[]*http.Request) {
	t.Helper()
	reached = &[]*http.Request{}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*reached = append(*reached, r)
		w.Header().Set("Set-Cookie", "cluster=1")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	}))
	t.Cleanup(cluster.Close)
	s, err := NewServer(t.Context(), &rest.Config{Host: cluster.URL, BearerToken: "user"}, Scope{Namespace: "dns"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.listener.Close() })
	return s, reached
}

// send returns the answer to a GET of the target, changed by change.
func (s *Server) send(target string, change func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = s.session.host
	r.AddCookie(&http.Cookie{Name: s.session.cookie, Value: s.session.secret})
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Result()
}

func TestRequests(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	method := func(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }
	events := "/api/v1/namespaces/dns/events"
	for name, test := range map[string]struct {
		target string
		change func(*http.Request)
		code   int
	}{
		"page":                       {"/", nil, 200},
		"script":                     {"/app.js", nil, 200},
		"scope":                      {"/scope", nil, 200},
		"list":                       {statuses + "?limit=500&fieldSelector=kind%3DDNSZone", nil, 200},
		"watch":                      {statuses + "?watch=1&resourceVersion=4", nil, 200},
		"get":                        {statuses + "/arecord.www", nil, 200},
		"all namespaces":             {"/apis/sync.bindy.firestoned.io/v1alpha1/syncstatuses", nil, 200},
		"events of a zone":           {events + "?fieldSelector=involvedObject.kind%3DDNSZone,involvedObject.name%3Dmain", nil, 200},
		"same origin":                {statuses, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }, 200},
		"all events":                 {events, nil, 403},
		"events of a pod":            {events + "?fieldSelector=involvedObject.kind%3DPod,involvedObject.name%3Dmain", nil, 403},
		"events of a kind":           {events + "?fieldSelector=involvedObject.kind%3DDNSZone", nil, 403},
		"events without the object":  {events + "?fieldSelector=involvedObject.kind!%3DDNSZone,involvedObject.name%3Dmain", nil, 403},
		"two selectors":              {events + "?fieldSelector=involvedObject.kind%3DDNSZone,involvedObject.name%3Dmain&fieldSelector=", nil, 403},
		"secrets":                    {"/api/v1/namespaces/dns/secrets", nil, 403},
		"group without resource":     {"/apis/sync.bindy.firestoned.io/v1alpha1", nil, 403},
		"other resource":             {"/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/dns/secrets", nil, 403},
		"subresource":                {statuses + "/arecord.www/proxy", nil, 403},
		"prefix":                     {"/x" + statuses, nil, 403},
		"unknown parameter":          {statuses + "?dryRun=All", nil, 403},
		"malformed query":            {statuses + "?a;b", nil, 403},
		"traversal":                  {statuses + "/../../../../../../api/v1/secrets", nil, 403},
		"traversal in the namespace": {"/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/../syncstatuses", nil, 403},
		"encoded dots":               {statuses + "/%2e%2e/secrets", nil, 403},
		"encoded slash":              {"/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/dns%2Fsyncstatuses", nil, 403},
		"encoded letter":             {strings.Replace(statuses, "syncstatuses", "s%79ncstatuses", 1), nil, 403},
		"double slash":               {"/" + statuses, nil, 403},
		"trailing newline":           {statuses + "%0a", nil, 403},
		"upgrade":                    {statuses, header("Upgrade", "websocket"), 403},
		"POST":                       {statuses, method(http.MethodPost), 405},
		"DELETE":                     {statuses + "/arecord.www", method(http.MethodDelete), 405},
		"HEAD":                       {statuses, method(http.MethodHead), 405},
		"no cookie":                  {statuses, func(r *http.Request) { r.Header.Del("Cookie") }, 401},
		"no cookie, page":            {"/", func(r *http.Request) { r.Header.Del("Cookie") }, 401},
		"foreign host":               {statuses, func(r *http.Request) { r.Host = "attacker.example" }, 403},
		"localhost":                  {statuses, func(r *http.Request) { r.Host = strings.Replace(r.Host, "127.0.0.1", "localhost", 1) }, 403},
		"foreign origin":             {statuses, header("Origin", "http://attacker.example"), 403},
		"null origin":                {statuses, header("Origin", "null"), 403},
		"foreign site":               {statuses, header("Sec-Fetch-Site", "cross-site"), 403},
		"other port":                 {statuses, header("Sec-Fetch-Site", "same-site"), 403},
	} {
		t.Run(name, func(t *testing.T) {
			s, reached := testServer(t)
			response := s.send(test.target, test.change)
			if response.StatusCode != test.code {
				t.Errorf("%d, want %d", response.StatusCode, test.code)
			}
			if test.code != 200 && len(*reached) > 0 {
				t.Errorf("%s has reached the cluster", (*reached)[0].URL)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Set-Cookie": "",
			} {
				if got := response.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
		})
	}
}

// Browsers refuse scripts and styles of another type, and Go's types are those of the system.
func TestContentTypes(t *testing.T) {
	s, _ := testServer(t)
	for target, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml",
	} {
		if got := s.send(target, nil).Header.Get("Content-Type"); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	files, err := page.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if contentTypes[path.Ext(f.Name())] == "" {
			t.Errorf("%s has no type", f.Name())
		}
	}
}

func TestForwardedHeaders(t *testing.T) {
	s, reached := testServer(t)
	s.send(statuses, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer other")
		r.Header.Set("Impersonate-User", "admin")
		r.Header.Set("X-Remote-User", "admin")
	})
	if len(*reached) != 1 {
		t.Fatalf("%d requests, want 1", len(*reached))
	}
	h := (*reached)[0].Header
	for name, want := range map[string]string{"Authorization": "Bearer user", "Impersonate-User": "", "X-Remote-User": "", "Cookie": ""} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	s, _ := testServer(t)
	start := s.URL()
	strip := func(r *http.Request) { r.Header.Del("Cookie"); r.Host = s.session.host }
	if code := s.send("/?token=wrong", strip).StatusCode; code != http.StatusUnauthorized {
		t.Errorf("wrong token: %d", code)
	}
	foreign := func(r *http.Request) { strip(r); r.Host = "attacker.example" }
	if code := s.send(start, foreign).StatusCode; code != http.StatusForbidden {
		t.Errorf("token at a foreign host: %d", code)
	}
	first := s.send(start, strip)
	if first.StatusCode != http.StatusSeeOther || first.Header.Get("Location") != "/" {
		t.Errorf("first use: %d to %q", first.StatusCode, first.Header.Get("Location"))
	}
	if len(first.Cookies()) != 1 {
		t.Fatalf("cookies: %v", first.Cookies())
	}
	if c := first.Cookies()[0]; c.Value != s.session.secret || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("cookie: %v", c)
	}
	for _, target := range []string{start, "/?token="} {
		if second := s.send(target, strip); second.StatusCode != http.StatusUnauthorized || len(second.Cookies()) > 0 {
			t.Errorf("second use, %s: %d with cookies %v", target, second.StatusCode, second.Cookies())
		}
	}
}
