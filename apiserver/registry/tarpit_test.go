package registry

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// TestTarpitDelaysNobodyElse: forty zones on a server that takes every question and answers none are waited for until the
// deadline, and meanwhile another zone is read as ever.
func TestTarpitDelaysNobodyElse(t *testing.T) {
	const zones = 40
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	w := newWorld(t, func(o *testOptions) { o.Deadline = 10 * time.Minute })
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	w.Server("tarpit", v1beta1.RolePrimary, silent.LocalAddr().(*net.UDPAddr).AddrPort())
	tarpit := &v1beta1.Bind9Instance{}
	tarpit.Namespace, tarpit.Name = fakekube.Namespace, "tarpit"
	tarpit.Spec = v1beta1.Bind9InstanceSpec{ClusterRef: "tar", Role: v1beta1.RolePrimary, Replicas: new(int32(1))}
	w.Apply(tarpit)
	honest := fakekube.Zone("example.test", "primary")
	r := w.Record(honest, "www", "192.0.2.7")
	w.Apply(honest)
	w.Apply(r)
	for i := range zones {
		z := fakekube.Zone(fmt.Sprintf("z%d.test", i), "tarpit")
		z.Spec.ClusterRef = "tar"
		w.Apply(z)
	}
	w.awaitRecords(slices.Values([]string{"www"}))
	answered := make(chan string, zones)
	for i := range zones {
		go func() {
			name := fmt.Sprintf("dnszone.z%d.test", i)
			_, _ = w.verdicts.getVerdict(w.ctx, keyOf(name)) // It waits until its zone is in the caches, too.
			answered <- name
		}()
	}
	if _, _, err := silent.ReadFrom(make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if s := w.get("arecord.www"); !s.Status.InSync {
			t.Errorf("%s: %s", s.Status.Phase, states(s))
		}
	}
	select {
	case name := <-answered:
		t.Errorf("%s was answered before its deadline: nobody was waiting", name)
	default:
	}
}

// TestSilentServerIsWaitedForOnce: a reader who has waited for a server in vain is not made to wait again because something else was
// declared meanwhile; servers that answer are asked about that.
func TestSilentServerIsWaitedForOnce(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var questions atomic.Int32 // Copies of one that is sent again are one, and come at any time.
	go func() {
		seen, buffer := map[uint16]bool{}, make([]byte, 512)
		for {
			n, _, err := silent.ReadFrom(buffer)
			if err != nil {
				return
			}
			if id := binary.BigEndian.Uint16(buffer[:max(n, 2)]); !seen[id] {
				seen[id] = true
				questions.Add(1)
			}
		}
	}()
	// A server that was silent is asked again after two deadlines: the change is judged before, also by a busy machine.
	w := newWorld(t, func(o *testOptions) { o.Deadline = 1500 * time.Millisecond })
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	w.Server("tarpit", v1beta1.RoleSecondary, silent.LocalAddr().(*net.UDPAddr).AddrPort())
	z := fakekube.Zone("example.test", "primary", "tarpit")
	r := w.Record(z, "www", "192.0.2.7")
	w.Apply(z)
	w.Apply(r)
	w.awaitRecords(slices.Values([]string{"www"}))
	w.get("arecord.www") // All that is looked at once is known.

	called, key := time.Now(), keyOf("arecord.www")
	verdict := func() string {
		return states(w.verdicts.refresher.Verdicts(w.ctx, []desired.Key{key}, called)[0])
	}
	if got, want := verdict(), "OutOfSync primary-0=InSync tarpit-0=Unreachable"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	asked := questions.Load()
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.SetProgrammed(z, r)
	w.Apply(r)
	w.Eventually("the change is judged", func() bool { return strings.Contains(verdict(), "primary-0=Divergent") })
	if more := questions.Load() - asked; more > 0 {
		t.Errorf("the server that was silent was asked %d times more for the same reader", more)
	}
}

// TestManyZonesAreWaitedFor: a server that answers for one zone after the other is not silent because the last of them take longer than
// the deadline.
func TestManyZonesAreWaitedFor(t *testing.T) {
	const zones, deadline = 200, 5 * time.Second // A slow machine has 25 ms for each answer.
	w := newWorld(t, func(o *testOptions) { o.Deadline = deadline })
	var served []bind.Zone
	for i := range zones {
		served = append(served, bind.Zone{Name: fmt.Sprintf("z%d.test.", i), Records: "www A 192.0.2.7"})
	}
	primary := bind.Start(t, bind.Options{Zones: served, Transfer: w.Key})
	proxy := bind.StartProxy(t, primary.Addr)
	w.Server("primary", v1beta1.RolePrimary, proxy.Addr)
	for i := range zones {
		w.Apply(fakekube.Zone(fmt.Sprintf("z%d.test", i), "primary"))
	}
	ofZones := everythingIn(ns)
	ofZones.fields = fields.OneTermEqualSelector(syncv1.FieldKind, "DNSZone")
	w.Eventually("all zones are in the caches", func() bool { return len(w.verdicts.candidates(ofZones)) == zones })
	// However fast the machine, the last transfers come after the deadline.
	var transfers atomic.Int64
	began := time.Now()
	proxy.Filter(func(network string, reply []byte) ([]byte, error) {
		if network == "tcp" {
			time.Sleep(time.Until(began.Add(time.Duration(transfers.Add(1)) * 6 * deadline / (5 * zones))))
		}
		return reply, nil
	})
	watching := w.watch(*ofZones, store.WatchOptions{})
	list := w.list(*ofZones)
	if took := time.Since(began); took < deadline {
		t.Errorf("all have answered after %s, the test needs more zones", took)
	}
	if len(list.Items) != zones {
		t.Errorf("%d of %d are listed", len(list.Items), zones)
	}
	for i := range list.Items {
		if s := &list.Items[i]; !s.Status.InSync {
			t.Fatalf("%s in a list: %s", s.Name, states(s))
		}
	}
	if s := w.get("bind9instance.primary"); !s.Status.InSync {
		t.Errorf("%s: %s", s.Name, states(s))
	}
	for range zones {
		if _, s := watching.next(); !s.Status.InSync {
			t.Fatalf("%s in a watch: %s", s.Name, states(s))
		}
	}
}

// TestImpatientReader: that a reader gives up does not make a server silent for others.
func TestImpatientReader(t *testing.T) {
	w := newWorld(t)
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	w.awaitRecords(slices.Values([]string{"www"}))
	w.get("arecord.www")
	for n := range 200 {
		ctx, cancel := context.WithTimeout(w.ctx, time.Duration(n)*10*time.Microsecond)
		_, _ = w.verdicts.getVerdict(ctx, keyOf("arecord.www"))
		cancel()
		if v := w.verdicts.refresher.Verdicts(w.ctx, []desired.Key{keyOf("arecord.www")}, time.Time{})[0]; !v.Status.InSync {
			t.Fatalf("after a reader had given up: %s", states(v))
		}
	}
}
