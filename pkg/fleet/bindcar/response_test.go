package bindcar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// endless is begin, and then repeat until size bytes were read.
type endless struct {
	begin, repeat string
	size, at      int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for ; n < len(p); n++ {
		switch {
		case e.at >= e.size:
			return n, io.EOF
		case e.at < len(e.begin):
			p[n] = e.begin[e.at]
		default:
			p[n] = e.repeat[(e.at-len(e.begin))%len(e.repeat)]
		}
		e.at++
	}
	return n, nil
}

func respond(code int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Body: io.NopCloser(body)}
}

// TestZoneIsBounded: one zone of a list may take so much and no more, however short the list is.
func TestZoneIsBounded(t *testing.T) {
	frame := len(`{"filePath":""}`)
	for size, wanted := range map[int]string{maxItem: "", maxItem + 1: "a zone takes more than 16384 bytes"} {
		text := `{"items":[{"filePath":"` + strings.Repeat("a", size-frame) + `"}]}`
		err := decodeResponse("dns", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{})
		if (err == nil) != (wanted == "") || err != nil && !strings.Contains(err.Error(), wanted) {
			t.Errorf("%d bytes: %v, want %q", size, err, wanted)
		}
	}
	for _, list := range []string{`{"items":[{"name":"%s"}]}`, `{"zones":["%s"]}`} {
		for size, wanted := range map[int]string{maxName: "", maxName + 1: "the name of a zone has more than 1020 bytes"} {
			text := fmt.Sprintf(list, strings.Repeat("a", size))
			err := decodeResponse("dns", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{})
			if (err == nil) != (wanted == "") || err != nil && (!errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), wanted)) {
				t.Errorf("%s with %d bytes: %v, want %q", list, size, err, wanted)
			}
		}
	}
	for fields, wanted := range map[int]string{maxFields: "", maxFields + 1: "more than 32 fields"} {
		text := "{" + strings.TrimSuffix(strings.Repeat(`"count":1,`, fields), ",") + "}"
		err := decodeResponse("dns", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{})
		if (err == nil) != (wanted == "") || err != nil && (!errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), wanted)) {
			t.Errorf("%d fields: %v, want %q", fields, err, wanted)
		}
	}
	large := &endless{`{"items":[{"primaries":[""`, `,""`, maxListResponse, 0}
	if err := decodeResponse("dns", respond(http.StatusOK, large), &ZoneList{}); !errors.Is(err, errTooLarge) || large.at > 4*maxResponse {
		t.Errorf("an endless zone: %v after %d bytes", err, large.at)
	}
}

// TestZoneList: a list is decoded as encoding/json decodes it, whatever the order of its fields.
func TestZoneList(t *testing.T) {
	serial := uint32(7)
	want := ZoneList{Zones: []string{"a.test", "b.test"}, Count: 2, Items: []Zone{
		{Name: "a.test", Type: Primary, Serial: &serial, Added: true, AlsoNotify: []string{}},
		{Name: "b.test", Type: Secondary, Primaries: []string{"192.0.2.1:53"}},
	}}
	for name, text := range map[string]string{
		"in order": `{"zones":["a.test","b.test"],"count":2,"items":[{"name":"a.test","zoneType":"primary","serial":7,"added":true,"alsoNotify":[]},
			{"name":"b.test","zoneType":"secondary","primaries":["192.0.2.1:53"]}]}`,
		"another order, with a new field": `{"new":{"x":[1]},"items":[{"name":"a.test","zoneType":"primary","serial":7,"added":true,"alsoNotify":[]},
			{"name":"b.test","zoneType":"secondary","primaries":["192.0.2.1:53"]}],"count":2,"zones":["a.test","b.test"]}`,
	} {
		var got ZoneList
		if err := decodeResponse("dns", respond(http.StatusOK, strings.NewReader(text)), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, text := range []string{``, `[]`, `{"zones":{}}`, `{"zones":[1]}`, `{"zones":["a"`, `{"items":[[]]}`} {
		if err := decodeResponse("dns", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{}); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	var none ZoneList
	if err := decodeResponse("dns", respond(http.StatusOK, strings.NewReader(`{"zones":null,"count":0}`)), &none); err != nil || len(none.Zones) > 0 {
		t.Errorf("null: %v, %v", none, err)
	}
}

// TestVersionIsBounded: what a sidecar calls named's version is in every status of its instance.
func TestVersionIsBounded(t *testing.T) {
	for sent, want := range map[string]string{
		"9.20.4": "9.20.4", strings.Repeat("9", 100_000): strings.Repeat("9", 64), "9\x1b[2J": "0x391b5b324a",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(Readiness{Version: sent}) }))
		got, err := NewClient(ClientOptions{}).Readiness(t.Context(), Address{Addr: netip.MustParseAddrPort(server.Listener.Addr().String())})
		server.Close()
		if err != nil || got.Version != want {
			t.Errorf("%.20q: %q, %v", sent, got.Version, err)
		}
	}
}

// TestListsOfOthersAreRead: sidecars of one namespace that send large lists, slowly, leave memory for those of others.
func TestListsOfOthersAreRead(t *testing.T) {
	const step = 1 << 20
	taken := int64(0)
	for lists.Take("flood", step) == nil {
		taken += step
	}
	text := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"name":"example.com"},`, 10_000), ",") + `]}`
	if err := decodeResponse("flood", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{}); !errors.Is(err, errTooLarge) {
		t.Errorf("another list of the same namespace: %v", err)
	}
	if err := decodeResponse("quiet", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{}); err != nil {
		t.Errorf("the list of another namespace: %v", err)
	}
	lists.Add("flood", -taken)
	if err := decodeResponse("flood", respond(http.StatusOK, strings.NewReader(text)), &ZoneList{}); err != nil || lists.Used() != 0 {
		t.Errorf("a list after that: %v", err)
	}
}
