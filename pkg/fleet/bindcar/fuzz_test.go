package bindcar

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"
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
		for _, out := range []any{nil, &ZoneList{}, &Zone{}, &Answer{}, &ServerKeys{}, &Statistics{}, &Readiness{}} {
			_ = decodeResponse("dns", &http.Response{StatusCode: code, Body: io.NopCloser(bytes.NewReader(body))}, out)
		}
		if lists.Used() != 0 {
			t.Fatal("memory of a list stays reserved")
		}
	})
}

// FuzzNotifications: whatever a sidecar sends in a stream of notifications, it is passed on line by line, and ends with an error.
func FuzzNotifications(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		watchdog, passed := time.NewTimer(time.Hour), 0
		defer watchdog.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // What is beyond the limits of a stream is not waited for.
		defer cancel()
		err := (&Client{maxSilence: time.Hour}).readStream(ctx, bytes.NewReader(body), watchdog, func(Notification) { passed++ })
		if lines := bytes.Count(body, []byte("\n")) + 1; err == nil || passed > lines {
			t.Errorf("%d notifications in %d lines, and then %v", passed, lines, err)
		}
	})
}
