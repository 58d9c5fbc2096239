package bindcar

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/status/reason"
	"github.com/lockstep-dns/lockstep/test/heap"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// hostileBody is begin, and then repeat without end; slow, byte by byte.
type hostileBody struct {
	begin, repeat string
	slow          bool
}

// ServeHTTP sends the body until nobody reads any more.
func (b hostileBody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.WriteString(w, b.begin); err != nil {
		return
	}
	if !b.slow {
		block := strings.Repeat(b.repeat, max(64<<10/len(b.repeat), 1))
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
		return
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			_, _ = io.WriteString(w, b.repeat[n%len(b.repeat):][:1])
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// maxPatience is far more than any of these may take on the slowest machine: without its limit each goes on for ever.
const maxPatience = 2 * time.Minute

// TestHostileResponses: whatever a sidecar sends, a client gives up, says that it was too much or took too long, and takes a bounded amount
// of memory. Empty objects take a hundred times the memory of their text.
func TestHostileResponses(t *testing.T) {
	const tooLarge, late = "sent a response that is too large", "cannot connect to Bindcar API"
	list := func(ctx context.Context, c *Client, at Address) error { _, err := c.Zones(ctx, at); return err }
	zone := func(ctx context.Context, c *Client, at Address) error {
		_, err := c.Zone(ctx, at, "a.test")
		return err
	}
	statistics := func(ctx context.Context, c *Client, at Address) error { _, err := c.Statistics(ctx, at); return err }
	stream := func(ctx context.Context, c *Client, at Address) error {
		return c.ReadNotifications(ctx, at, func(Notification) {})
	}
	flood := func(ctx context.Context, c *Client, at Address) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		n := 0
		return c.ReadNotifications(ctx, at, func(Notification) {
			if n++; n == maxLineBurst+maxLineRate {
				cancel()
			}
		})
	}
	for name, tc := range map[string]struct {
		body  hostileBody
		ask   func(context.Context, *Client, Address) error
		want  string
		bytes uint64
	}{
		"empty items":       {hostileBody{`{"items":[{}`, `,{}`, false}, list, tooLarge, 3 * maxListMemory},
		"empty names":       {hostileBody{`{"zones":[""`, `,""`, false}, list, tooLarge, 3 * maxListMemory},
		"one large item":    {hostileBody{`{"items":[{"primaries":[""`, `,""`, false}, list, tooLarge, 32 << 20},
		"long names":        {hostileBody{`{"items":[{}`, `,{"name":"` + strings.Repeat("x", 8000) + `"}`, false}, list, tooLarge, 32 << 20},
		"unknown field":     {hostileBody{`{"other":[1`, `,1`, false}, list, tooLarge, 32 << 20},
		"nested field":      {hostileBody{`{"other":`, `[`, false}, list, "sent a response that is not JSON", 32 << 20},
		"the same field":    {hostileBody{`{"count":1`, `,"count":1`, false}, list, tooLarge, 32 << 20},
		"lists without end": {hostileBody{`{"count":1`, `,"items":[{}]`, false}, list, tooLarge, 32 << 20},
		"zone":              {hostileBody{`{"primaries":[""`, `,""`, false}, zone, tooLarge, 32 << 20},
		"nested zone":       {hostileBody{``, `{"a":`, false}, zone, tooLarge, 32 << 20},
		"statistics":        {hostileBody{`{"queries":{"a":1`, `,"b":1`, false}, statistics, tooLarge, 32 << 20},
		"slow list":         {hostileBody{`{"items":[{}`, `,{}`, true}, list, late, 32 << 20},
		"slow zone":         {hostileBody{`{"primaries":[""`, `,""`, true}, zone, late, 32 << 20},
		"line without end":  {hostileBody{``, `x`, false}, stream, late, 32 << 20},
		"slow line":         {hostileBody{``, `x`, true}, stream, late, 32 << 20},
		"news without end":  {hostileBody{``, `{"zone":"a.test","serial":1}` + "\n", false}, flood, late, 32 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			cost := heap.OfChild(t, func() string {
				server := httptest.NewServer(tc.body)
				t.Cleanup(server.Close)
				return server.Listener.Addr().String()
			}, func(address string) {
				client := NewClient(ClientOptions{Timeout: maxPatience / 2})
				if tc.body.slow {
					client = NewClient(ClientOptions{Timeout: time.Second})
				}
				client.maxSilence = time.Second
				ctx, cancel := context.WithTimeout(t.Context(), maxPatience)
				defer cancel()
				err := tc.ask(ctx, client, Address{Addr: netip.MustParseAddrPort(address)})
				if failure, ok := errors.AsType[*Error](err); !ok || failure.Message != tc.want || ctx.Err() != nil {
					t.Errorf("error %v", err)
				}
				if lists.Used() != 0 {
					t.Error("memory is still reserved for a list that was given up")
				}
			})
			t.Logf("at most %d MiB were taken, given up after %s", cost.Bytes>>20, cost.Time)
			if cost.Bytes > tc.bytes {
				t.Errorf("%d MiB were taken", cost.Bytes>>20)
			}
		})
	}
}

// TestHostileHeaders: what comes before a response is bounded, too. A field of three bytes takes some hundred in memory.
func TestHostileHeaders(t *testing.T) {
	cost := heap.OfChild(t, func() string {
		return tcpserver.Start(t, sendHeaders).String()
	}, func(address string) {
		var failure *Error
		client := NewClient(ClientOptions{Timeout: maxPatience})
		_, err := client.Zones(t.Context(), Address{Addr: netip.MustParseAddrPort(address)})
		if !errors.As(err, &failure) || failure.Reason != reason.BindcarUnreachable {
			t.Errorf("error %v", err)
		}
	})
	t.Logf("at most %d MiB were taken, given up after %s", cost.Bytes>>20, cost.Time)
	if cost.Bytes > 16<<20 {
		t.Errorf("%d MiB were taken", cost.Bytes>>20)
	}
}

// sendHeaders begins a response, and sends fields of different names until nobody reads any more.
func sendHeaders(conn net.Conn) {
	out := bufio.NewWriterSize(conn, 64<<10)
	_, err := out.WriteString("HTTP/1.1 200 OK\r\n")
	for n := int64(0); err == nil; n++ {
		_, err = out.WriteString("x" + strconv.FormatInt(n, 36) + ":\r\n")
	}
}
