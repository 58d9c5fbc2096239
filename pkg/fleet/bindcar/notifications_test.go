package bindcar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder notes the times of notifications and of ends of streams.
type recorder struct {
	notified int
	closed   []time.Time
}

func (r *recorder) HandleNotification(context.Context, Notification) { r.notified++ }
func (r *recorder) HandleStreamClosed(_ context.Context, _ error) {
	r.closed = append(r.closed, time.Now())
}

func TestFollowNotificationsBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var r recorder
		attempts := 0
		FollowNotifications(ctx, func(ctx context.Context, notify func(Notification)) error {
			switch attempts++; attempts {
			case 10: // It lasts: the next attempt comes soon.
				notify(Notification{Lost: true})
				time.Sleep(time.Minute)
			case 12:
				notify(Notification{Lost: true})
				cancel()
				return ctx.Err()
			}
			return errors.Join(io.EOF)
		}, &r)
		if r.notified != 2 || len(r.closed) != 11 {
			t.Fatalf("%d notifications, %d streams closed; want 2 and 11, none for the end of the context", r.notified, len(r.closed))
		}
		delay := func(i int) time.Duration { return r.closed[i].Sub(r.closed[i-1]) }
		for i, least := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
			if d := delay(i + 1); d < least || d > least*12/10 {
				t.Errorf("attempt %d came after %s, want %s to %s", i+2, d, least, least*12/10)
			}
		}
		if d := delay(8); d < maxReconnectDelay || d > maxReconnectDelay*12/10 {
			t.Errorf("later attempts are %s apart, want some %s", d, maxReconnectDelay)
		}
		if d := delay(10); d > 300*time.Millisecond {
			t.Errorf("a stream that lasted is reopened after %s", d)
		}
	})
}

func TestFollowNotificationsEndsDuringDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var r recorder
		FollowNotifications(ctx, func(context.Context, func(Notification)) error { return io.EOF }, &r)
		if len(r.closed) != 1 {
			t.Errorf("%d attempts, want 1", len(r.closed))
		}
	})
}

// TestNoticesSilence: a connection whose other side is gone without a word is given up.
func TestNoticesSilence(t *testing.T) {
	var gone sync.WaitGroup
	gone.Add(1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"at":"2026-01-02T03:04:05Z","lost":true}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		gone.Done()
	}))
	defer web.Close()
	client := NewClient(ClientOptions{})
	client.maxSilence = time.Second
	heard := 0
	err := client.ReadNotifications(testContext(t), serverAt(web.URL), func(Notification) {
		heard++
		time.Sleep(2 * time.Second) // a busy reader is no silent server
	})
	if heard != 1 || !errors.Is(err, errStreamSilent) {
		t.Errorf("heard %d, got %v", heard, err)
	}
	gone.Wait()
}

// TestHeartbeatKeepsStream: a stream without news is not silent.
func TestHeartbeatKeepsStream(t *testing.T) {
	const interval = 20 * time.Millisecond
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 200 {
			_, _ = fmt.Fprintf(w, `{"at":"2026-01-02T03:04:05Z","lost":%v}`+"\n", i == 0)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(interval)
		}
	}))
	defer web.Close()
	client := NewClient(ClientOptions{})
	client.maxSilence = 150 * interval
	heard := 0
	if err := client.ReadNotifications(testContext(t), serverAt(web.URL), func(Notification) { heard++ }); heard != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("heard %d, got %v", heard, err)
	}
}

// closedAfterFirst answers with a stream that has ended after its first notification, whatever the request's context.
type closedAfterFirst struct{}

func (closedAfterFirst) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"lost":true}` + "\n"))}, nil
}

// The end of a stream that the caller gave up is the caller's, even if the sidecar's end of the connection comes first.
func TestReadNotificationsReportsCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Client{streams: &http.Client{Transport: closedAfterFirst{}}, maxSilence: time.Minute}
	if err := c.ReadNotifications(ctx, Address{Addr: netip.MustParseAddrPort("127.0.0.1:8080")}, func(Notification) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with: %v", err)
	}
}

// repeated is a body that repeats a line.
type repeated struct{ line string }

func (e repeated) Read(p []byte) (n int, err error) {
	for n+len(e.line) <= len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

// TestNotificationsAreLimited: a sidecar that sends lines without end is read slowly, and one that has all zones looked at again and again more
// so.
func TestNotificationsAreLimited(t *testing.T) {
	const seconds = 10
	for name, tc := range map[string]struct {
		line string
		most int
	}{
		"news":       {`{"zone":"a.test","serial":1}`, maxLineBurst + seconds*maxLineRate},
		"heartbeats": {`{}`, 0},
		"lost":       {`{"lost":true}`, maxLineBurst/lostLines + seconds},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				defer cancel()
				watchdog := time.NewTimer(time.Hour)
				defer watchdog.Stop()
				handled := 0
				err := (&Client{maxSilence: time.Hour}).readStream(ctx, repeated{tc.line + "\n"}, watchdog, func(Notification) {
					if handled++; handled > tc.most {
						t.Fatalf("more than %d lines were handled in %d seconds", tc.most, seconds)
					}
				})
				if err == nil || handled < tc.most/2 {
					t.Errorf("%d lines were handled, want some %d: %v", handled, tc.most, err)
				}
			})
		})
	}
}
