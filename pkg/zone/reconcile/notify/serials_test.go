package notify

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
)

func TestNewsIsWhatNobodyExpectedAndWhatWasAwaited(t *testing.T) {
	zone := membership.ZoneKey{Name: "zone"}
	server := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	s := &Serials{}
	if s.IsNews(zone, server("a"), new(uint32(7))) {
		t.Error("a zone without a pass has news")
	}
	s.Expect(zone, 7)
	s.Await(zone, []types.NamespacedName{server("a"), server("b")})
	s.Expect(zone, 7)
	for _, step := range []struct {
		server string
		serial uint32
		news   bool
	}{{"primary", 7, false}, {"a", 6, true}, {"a", 7, true}, {"a", 7, false}, {"b", 7, true}, {"b", 7, false}, {"b", 0, true}} {
		if got := s.IsNews(zone, server(step.server), &step.serial); got != step.news {
			t.Errorf("serial %d on %s is news: %v", step.serial, step.server, got)
		}
	}
	if !s.IsNews(zone, server("b"), nil) {
		t.Error("that a server has no serial any more is no news")
	}
	s.Await(zone, []types.NamespacedName{server("a")})
	s.Expect(zone, 8)
	if s.IsNews(zone, server("a"), new(uint32(8))) {
		t.Error("a server is awaited with a former serial")
	}
	s.Expect(zone, 0) // It has wrapped.
	for serial, news := range map[uint32]bool{8: true, 0: false} {
		if got := s.IsNews(zone, server("a"), &serial); got != news {
			t.Errorf("after the wrap, serial %d is news: %v", serial, got)
		}
	}
	if !s.IsNews(zone, server("a"), nil) {
		t.Error("after the wrap, that a server has no serial is no news")
	}
	wrapped := membership.ZoneKey{Name: "wrapped"}
	s.Expect(wrapped, 0) // It was at 0 when the process began.
	if !s.IsNews(wrapped, server("a"), new(uint32(1))) {
		t.Error("the first change after the wrap is no news")
	}
}

func TestZoneIsReloadedWhenItIsNotifiedWithTheSameSerial(t *testing.T) {
	s := &stream{last: map[membership.ZoneKey]uint32{}}
	for i, step := range []struct {
		zone     string
		serial   *uint32
		reloaded bool
	}{
		{"a", new(uint32(7)), false}, {"b", new(uint32(7)), false}, {"a", new(uint32(8)), false}, {"a", new(uint32(8)), true},
		{"b", new(uint32(0)), false}, {"b", new(uint32(0)), true}, {"b", nil, false}, {"b", nil, false}, {"b", new(uint32(0)), false},
	} {
		if got := s.isRepeated(membership.ZoneKey{Name: step.zone}, step.serial); got != step.reloaded {
			t.Errorf("notification %d: reloaded is %v", i, got)
		}
	}
	zone, serials := membership.ZoneKey{Name: "zone"}, &Serials{}
	serials.NoteReloaded(zone, types.NamespacedName{Name: "a"})
	if got := serials.TakeReloaded(zone); !got.Has(types.NamespacedName{Name: "a"}) || serials.TakeReloaded(zone).Len() != 0 {
		t.Errorf("reloaded: %v", got)
	}
}

// TestHostileNotifications: nothing is kept of zones that a sidecar makes up.
func TestHostileNotifications(t *testing.T) {
	s := &stream{Listener: &Listener{Zones: zonecache.New(), Serials: &Serials{}}, last: map[membership.ZoneKey]uint32{}}
	for n := range 1000 {
		s.HandleNotification(t.Context(), bindcar.Notification{Zone: fmt.Sprintf("z%d.test", n), Serial: new(uint32(1))})
	}
	if len(s.last) > 0 {
		t.Errorf("%d zones are remembered that nobody declares", len(s.last))
	}
}

// Of zones that are gone nothing is remembered, however many have come and gone while the stream lasts.
func TestNotificationsOfZonesThatAreGone(t *testing.T) {
	s := &stream{Listener: &Listener{Zones: zonecache.New()}, last: map[membership.ZoneKey]uint32{}}
	stays := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "stays"}}
	s.Zones.Set(stays)
	s.isRepeated(membership.KeyOfZone(stays), new(uint32(7)))
	for n := range 5 * minLast {
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprint(n)}}
		s.Zones.Set(zone)
		s.isRepeated(membership.KeyOfZone(zone), new(uint32(1)))
		s.Zones.Remove(zone)
	}
	if len(s.last) > minLast || !s.isRepeated(membership.KeyOfZone(stays), new(uint32(7))) {
		t.Errorf("serials of %d zones are remembered, and that of the one that is there: %d", len(s.last), s.last[membership.KeyOfZone(stays)])
	}
}
