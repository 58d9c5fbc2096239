package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestOverlay(t *testing.T) {
	www, old, ftp := a("www.example.", 300, "192.0.2.1"), a("www.example.", 60, "192.0.2.9"), a("ftp.example.", 300, "192.0.2.2")
	text := rrset.New(rrset.Key{Name: "www.example.", Type: dns.TypeTXT}, 300, `"x"`)
	alias := cname("www.example.", "ftp.example.")
	keyset := rrset.New(rrset.Key{Name: "example.", Type: dns.TypeDNSKEY}, 300, "x")
	for name, tc := range map[string]struct{ top, bottom, hidden, want []rrset.RRset }{
		"nothing":                    {},
		"top over bottom":            {[]rrset.RRset{www}, []rrset.RRset{old, ftp}, nil, []rrset.RRset{www, ftp}},
		"hidden":                     {[]rrset.RRset{www}, []rrset.RRset{ftp}, []rrset.RRset{www, ftp}, []rrset.RRset{www}},
		"beside foreign data":        {[]rrset.RRset{www}, []rrset.RRset{text}, nil, []rrset.RRset{www, text}},
		"alias instead of ours":      {[]rrset.RRset{alias}, []rrset.RRset{www, text}, []rrset.RRset{www, text}, []rrset.RRset{alias}},
		"foreign data in the way":    {[]rrset.RRset{alias, ftp}, []rrset.RRset{text}, nil, []rrset.RRset{text, ftp}},
		"foreign alias in the way":   {[]rrset.RRset{www, ftp}, []rrset.RRset{alias}, nil, []rrset.RRset{alias, ftp}},
		"what the server keeps":      {[]rrset.RRset{www}, []rrset.RRset{keyset}, nil, []rrset.RRset{www}},
		"already beside foreign one": {[]rrset.RRset{www}, []rrset.RRset{www, alias}, nil, []rrset.RRset{www, alias}},
	} {
		t.Run(name, func(t *testing.T) {
			checkContent(t, Overlay{zone(tc.top...), zone(tc.bottom...), keys(tc.hidden...)}, zone(tc.want...))
		})
	}
}

// checkContent reads a Content in every way there is.
func checkContent(t *testing.T, c Content, want content) {
	t.Helper()
	got, at := content{}, content{}
	names := map[string]bool{"absent.example.": true}
	for s := range c.All() {
		if _, twice := got[s.Key]; twice {
			t.Fatalf("%s comes twice", s)
		}
		got[s.Key], names[s.Name] = s, true
		if one, ok := c.Get(s.Key); !ok || !one.Equal(s) {
			t.Fatalf("Get gives %v, All %v", one, s)
		}
	}
	for name := range names {
		for s := range c.At(name) {
			at[s.Key] = s
		}
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(want, at); diff != "" || c.Len() != len(want) {
		t.Fatalf("%d RRsets: %s", c.Len(), diff)
	}
}

// TestOverlayIsWhatAServerEndsWith: the bottom with what it lacks of the top is the overlay, and nothing is left to do.
func TestOverlayIsWhatAServerEndsWith(t *testing.T) {
	for seed := range uint64(100) {
		w := &world{r: rand.New(rand.NewPCG(seed, 4)), want: content{}, observed: content{}, owned: map[rrset.Key]bool{}}
		for range 150 {
			w.change()
		}
		overlay := Overlay{w.want, w.observed, w.owns}
		after := apply(w.observed, Calculate(w.want, w.observed, w.owns, rrset.SOA{}, rrset.SOA{}))
		if left := Calculate(overlay, after, none, rrset.SOA{}, rrset.SOA{}); left.HasChanges() || len(left.Conflicts) > 0 {
			t.Fatalf("seed %d: %+v", seed, left)
		}
		maps.DeleteFunc(after, func(k rrset.Key, _ rrset.RRset) bool { return rrset.IsServerMaintained(k.Type) })
		checkContent(t, overlay, after)
		for range 50 { // Also what is not there must not be found.
			key := rrset.Key{Name: fmt.Sprintf("n%d.example.", w.r.IntN(12)), Type: worldTypes[w.r.IntN(len(worldTypes))]}
			if _, ok := overlay.Get(key); ok != (func() bool { _, ok := after[key]; return ok })() {
				t.Fatalf("seed %d: %s: %t", seed, key, ok)
			}
		}
	}
}
