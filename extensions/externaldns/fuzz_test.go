package externaldns

import (
	"bytes"
	"net/http/httptest"
	"testing"
)

// FuzzRequests: whatever comes in a request, the answer is one with which external-dns goes on.
func FuzzRequests(f *testing.F) {
	endpoint := `{"dnsName":"www.example.com","targets":["192.0.2.1"],"recordType":"A","recordTTL":300,"labels":{"resource":"service/dns/web"}}`
	for _, body := range []string{
		"", "null", "[]", "{}", "[null]", "[" + endpoint + "]", "[" + endpoint + ",null," + endpoint + "]",
		`{"create":[` + endpoint + `]}`, `{"create":[null],"updateOld":[{}],"updateNew":[{}],"delete":null}`,
		`{"updateOld":[` + endpoint + `],"updateNew":[],"delete":[` + endpoint + `]}`,
	} {
		f.Add(true, []byte(body))
		f.Add(false, []byte(body))
	}
	f.Fuzz(func(t *testing.T, adjust bool, body []byte) {
		path := "/records"
		if adjust {
			path = "/adjustendpoints"
		}
		request, answer := httptest.NewRequestWithContext(t.Context(), "POST", path, bytes.NewReader(body)), httptest.NewRecorder()
		newProtocol(t).server.handler().ServeHTTP(answer, request)
		if code := answer.Code; code >= 300 && (code < 500 || code > 510) {
			t.Errorf("answered with %d: %s", code, answer.Body)
		}
	})
}
