package refresh

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// TestPanicEndsOneRequest: a panic of an evaluation ends the request that it is for, which recovers, and not the process.
func TestPanicEndsOneRequest(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Declare("www")
	www := desired.Key{Kind: "ARecord", Namespace: fakekube.Namespace, Name: "www"}
	w.Eventually("the zone of the record is known", func() bool {
		s, _ := w.index.Resolve(www)
		return len(s.Zones) > 0
	})
	w.recorder.mu.Lock()
	w.recorder.broken = true
	w.recorder.mu.Unlock()
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.HasPrefix(err.Error(), "broken") {
			t.Errorf("recovered %v", err)
		}
	}()
	v, err := w.CurrentVerdict(t.Context(), www, time.Now())
	t.Errorf("%v, %v", v, err)
}
