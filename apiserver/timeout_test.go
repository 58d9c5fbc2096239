package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// What is longer than the longest watch becomes that; everything else is handed on as it came.
func TestClampTimeout(t *testing.T) {
	for query, want := range map[string]string{
		"":                       "",
		"watch=1":                "watch=1",
		"timeoutSeconds=":        "timeoutSeconds=",
		"timeoutSeconds=-1":      "timeoutSeconds=-1",
		"timeoutSeconds=x":       "timeoutSeconds=x",
		"timeoutSeconds=7200":    "timeoutSeconds=7200",
		"b=1&timeoutSeconds=5&a": "b=1&timeoutSeconds=5&a",
		"timeoutSeconds=7201":    "timeoutSeconds=7200",
		"timeoutSeconds=9223372036854775807&watch=1&fieldSelector=kind%3DARecord": "fieldSelector=kind%3DARecord&timeoutSeconds=7200&watch=1",
	} {
		got := "nothing"
		next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.RawQuery })
		r := httptest.NewRequest(http.MethodGet, group+"/syncstatuses?"+query, http.NoBody)
		clampTimeout(next).ServeHTTP(httptest.NewRecorder(), r)
		if got != want || r.URL.RawQuery != query {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}
