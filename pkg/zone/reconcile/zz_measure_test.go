package reconcile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"os"
	"runtime/debug"

	memory "github.com/lockstep-dns/lockstep/test/heap"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func TestMeasure(t *testing.T) {
	var b strings.Builder
	text := strings.Repeat("x", 250)
	for i := range 200000 {
		fmt.Fprintf(&b, "n%d TXT %s\n", i, text)
	}
	r := newRig(t, 1, bind.Zone{Records: b.String()})
	b.Reset()
	debug.FreeOSMemory()
	peak := memory.Peak(func() { r.pass() })
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(s), "\n") {
		if strings.HasPrefix(l, "VmHWM") { t.Log(l) }
	}
	t.Logf("peak %d MiB, after %d MiB; mirrors %+v", peak>>20, m.HeapAlloc>>20, r.observer.Sizes())
	runtime.KeepAlive(r)
}
