package bindcar

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// FuzzResponse: whatever a sidecar sends is decoded or refused, and gives back the memory that was reserved for it.
func FuzzResponse(f *testing.F) {
	for _, body := range []string{
		"", "null", "{}", `{"zones":["example.com"],"items":[{"name":"example.com","serial":7,"added":true}],"count":1}`,
		`{"items":[{"name":"a"},null,{}],"unknown":[[[[]]]]}`, `{"zones":null,"items":{}}`, `{"error":"no","reason":"NotFound"}`,
	} {
		f.Add(http.StatusOK, []byte(body))
		f.Add(http.StatusNotFound, []byte(body))
	}
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		for _, out := range []any{nil, &ZoneList{}, &Zone{}} {
			_ = decodeResponse(&http.Response{StatusCode: code, Body: io.NopCloser(bytes.NewReader(body))}, out)
		}
		if !listsMemory.TryAcquire(maxListsMemory) {
			t.Fatal("memory of a list stays reserved")
		}
		listsMemory.Release(maxListsMemory)
	})
}
