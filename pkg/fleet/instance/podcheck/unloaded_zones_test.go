package podcheck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// Zones of a user's own configuration that named cannot load are reported by name, with its words, until they are corrected.
func TestUnloadedZonesAreNamed(t *testing.T) {
	const good = "@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.example.\n"
	f := newFaultyPod(t, "")
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var zones strings.Builder
	for _, name := range []string{"bad", "empty", "gone", "good", "more"} {
		fmt.Fprintf(&zones, "zone \"%s.example\" { type primary; file \"%s.zone\"; };\n", name, name)
	}
	zones.WriteString("zone \"second.example\" { type secondary; primaries { 127.0.0.1 port 1; }; };\n")
	f.named.Kill()
	write(f.named.Layout.ConfigDir, named.ZonesFile, zones.String())
	write(f.named.Layout.CacheDir, "good.zone", good)
	write(f.named.Layout.CacheDir, "bad.zone", good+"www 60 A 192.0.2.256\n")
	write(f.named.Layout.CacheDir, "empty.zone", "")
	f.named.Restart(t)
	f.waitReady()
	pod := runningPod(corev1.ConditionTrue)
	look := func() []string {
		t.Helper()
		list, err := f.Zones(t.Context(), bindcar.Address{})
		if err != nil {
			t.Fatal(err)
		}
		return f.checker.unloadedZones(t.Context(), f.checker.gates.gateOf(pod), bindcar.Address{}, list)
	}
	var got []string
	want := []string{
		"bad.example: bad dotted quad", "empty.example: bad zone", "gone.example: file not found",
		"more.example", "second.example: nothing transferred from its primaries yet",
	}
	f.waitUntil(func() error {
		if got = look(); len(got) < len(want) {
			return fmt.Errorf("unloaded: %q", got)
		}
		return nil
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write(f.named.Layout.CacheDir, "bad.zone", good)
	if got := look(); !strings.HasPrefix(got[0], "bad.example: ") {
		t.Errorf("named was asked again at once: %q", got)
	}
	f.clock = f.clock.Add(explainInterval)
	f.waitUntil(func() error {
		if got := look(); strings.HasPrefix(got[0], "bad.example: ") {
			return fmt.Errorf("a zone that was corrected: %q", got)
		}
		return nil
	})
	const prefix = "Pod web-0 does not serve zones of configMapRefs: empty.example: bad zone; gone.example: file not found; more.example: file not found and 1 more; correct"
	if ready := f.ready(pod); ready.Reason != status.ZonesNotLoaded || !strings.HasPrefix(ready.Message, prefix) {
		t.Errorf("the instance's condition: %+v", ready)
	}
}

// refusing says why it loads no zone.
type refusing struct{ Sidecar }

func (refusing) Command(context.Context, bindcar.Address, string, string) (string, error) {
	return "", &bindcar.Error{Code: 500, Details: "bad zone"}
}

// TestExplanationsAreBounded: a sidecar that lists other zones each time has the fleet manager remember few of them.
func TestExplanationsAreBounded(t *testing.T) {
	checker := New(nil, nil, "", refusing{}, nil, nil)
	gate := checker.gates.gateOf(runningPod(corev1.ConditionTrue))
	for n := range 1000 {
		list := bindcar.ZoneList{Items: []bindcar.Zone{{Name: fmt.Sprintf("%d.test", n), Type: bindcar.Primary}}}
		if got := checker.unloadedZones(t.Context(), gate, bindcar.Address{}, list); len(got) != 1 || !strings.HasSuffix(got[0], ": bad zone") {
			t.Fatalf("%q", got)
		}
	}
	if n := gate.explanations.Len(); n > maxExplanations {
		t.Errorf("%d explanations are remembered", n)
	}
}
