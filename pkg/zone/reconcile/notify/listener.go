// Package notify listens to the NOTIFYs that servers receive: a serial that is not the expected one has its zone enqueued.
// So a change that somebody else makes is found, and undone, when it happens.
package notify

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
)

const (
	// serverInterval is how often the servers are listed.
	serverInterval = time.Second
	// pollInterval is how often a server without a notification stream is asked for the serials of its zones, with so many
	// questions at once, and streamInterval after how long it is asked for a stream again.
	pollInterval     = 5 * time.Second
	maxPollQuestions = 16
	streamInterval   = 5 * time.Minute
)

// Sidecar streams the NOTIFYs that a server received.
type Sidecar interface {
	ReadNotifications(ctx context.Context, server bindcar.Address, fn func(bindcar.Notification)) error
}

// DNS asks servers for serials.
type DNS interface {
	Serial(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	IsUnreachable(at observe.Peer) bool
}

// Keys has the TSIG keys of instances.
type Keys interface {
	TransferKey(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error)
}

// Listener listens to every ready server. It is a runnable of the manager, for the leader alone.
type Listener struct {
	Client  client.Reader
	Sidecar Sidecar
	DNS     DNS
	Keys    Keys
	Zones   *zonecache.Cache
	Serials *Serials
	// SystemNamespace is the namespace that Lockstep itself runs in.
	SystemNamespace string

	streams map[serverKey]context.CancelFunc
}

// serverKey names a server that is listened to: a pod's address changes when the pod does.
type serverKey struct {
	pod      types.NamespacedName
	instance string
	addr     netip.AddrPort
}

func (k serverKey) peer() observe.Peer { return observe.Peer{Addr: k.addr, Namespace: k.pod.Namespace} }

// Start implements manager.Runnable.
func (l *Listener) Start(ctx context.Context) error {
	l.streams = map[serverKey]context.CancelFunc{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := l.updateStreams(ctx); err != nil {
			log.FromContext(ctx).Info("servers could not be listed", "reason", err.Error())
		}
	}, serverInterval)
	return nil
}

// updateStreams opens a stream to every ready server that has none, and closes those of servers that are gone.
func (l *Listener) updateStreams(ctx context.Context) error {
	instances, err := inventory.ListLiveInstances(ctx, l.Client)
	if err != nil {
		return err
	}
	servers, err := inventory.ListServers(ctx, l.Client, instances)
	if err != nil {
		return err
	}
	ready := map[serverKey]bool{}
	for _, s := range servers {
		if s.Addr.IsValid() && s.PodReady {
			ready[serverKey{types.NamespacedName{Namespace: s.Namespace, Name: s.Pod}, s.Instance, s.Addr}] = true
		}
	}
	for key, closeStream := range l.streams {
		if !ready[key] {
			closeStream()
			delete(l.streams, key)
		}
	}
	for key := range ready {
		if l.streams[key] == nil {
			own, closeStream := context.WithCancel(ctx)
			l.streams[key] = closeStream
			s := &stream{Listener: l, server: key, last: map[membership.ZoneKey]uint32{}}
			go bindcar.FollowNotifications(own, s.open, s)
		}
	}
	return nil
}

// stream handles the notifications of one server.
type stream struct {
	*Listener
	server serverKey
	// last has the serial of the last notification of each zone that the server serves: of others it may send any number. kept are those that
	// were there when zones that are gone were dropped.
	last map[membership.ZoneKey]uint32
	kept int
}

// minLast is how many zones last has before those that are gone are dropped.
const minLast = 1000

func (s *stream) open(ctx context.Context, fn func(bindcar.Notification)) error {
	sidecar := inventory.SidecarOf(observe.Server{Addr: s.server.addr, Namespace: s.server.pod.Namespace, Instance: s.server.instance})
	return s.Sidecar.ReadNotifications(ctx, sidecar, fn)
}

// HandleNotification implements bindcar.NotificationHandler.
func (s *stream) HandleNotification(ctx context.Context, n bindcar.Notification) {
	switch {
	case n.Lost:
		s.pollSerials(ctx)
	case n.Zone != "":
		for _, zone := range s.servedZones(ctx, s.Zones.Members.ZonesNamed(n.Zone)) {
			key := membership.KeyOfZone(zone)
			reloaded := s.isRepeated(key, n.Serial)
			if s.enqueueIfNews(key, n.Serial); reloaded {
				s.Serials.NoteReloaded(key, s.server.pod)
				s.Zones.Enqueue(key)
			}
		}
	}
}

// isRepeated reports whether a zone was notified with the same serial the last time: named says so of a zone that it has
// loaded again, and somebody may have edited its file in between. A nil serial is unknown.
func (s *stream) isRepeated(zone membership.ZoneKey, serial *uint32) bool {
	if serial == nil {
		delete(s.last, zone)
		return false
	}
	last, known := s.last[zone]
	if s.last[zone] = *serial; len(s.last) >= max(minLast, 2*s.kept) {
		maps.DeleteFunc(s.last, func(zone membership.ZoneKey, _ uint32) bool { return s.Zones.Members.Zone(zone) == nil })
		s.kept = len(s.last)
	}
	return known && last == *serial
}

// HandleStreamClosed implements bindcar.NotificationHandler. A server that has no streams is polled for a while.
func (s *stream) HandleStreamClosed(ctx context.Context, err error) {
	if bindcar.IsNotSupported(err) {
		polling, cancel := context.WithTimeout(ctx, streamInterval)
		defer cancel()
		wait.JitterUntilWithContext(polling, s.pollSerials, pollInterval, 0.1, true)
		return
	}
	log.FromContext(ctx).V(1).Info("notification stream closed; reconnecting", "server", s.server.pod.Name, "reason", err.Error())
}

func (s *stream) enqueueIfNews(zone membership.ZoneKey, serial *uint32) {
	if s.Serials.IsNews(zone, s.server.pod, serial) {
		s.Zones.Enqueue(zone)
	}
}

// pollSerials asks the server for the serials of all its zones.
func (s *stream) pollSerials(ctx context.Context) {
	instance := s.instance(ctx)
	if instance == nil {
		return
	}
	key, err := s.Keys.TransferKey(ctx, instance)
	if err != nil {
		return // The pass over each zone reports that.
	}
	var group errgroup.Group
	group.SetLimit(maxPollQuestions)
	for _, zone := range s.servedZones(ctx, s.Zones.Members.Zones()) {
		zoneKey := membership.KeyOfZone(zone)
		name, err := declaration.ZoneName(zone.Spec.ZoneName)
		if err != nil || ctx.Err() != nil || s.DNS.IsUnreachable(s.server.peer()) {
			continue
		}
		group.Go(func() error {
			seen := s.DNS.Serial(ctx, s.server.peer(), unreachable.Zone{Key: zoneKey, Name: name}, key)
			switch {
			case seen.Authoritative:
				s.enqueueIfNews(zoneKey, &seen.Serial)
			case seen.Rcode != observe.NoReply:
				s.enqueueIfNews(zoneKey, nil)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// instance returns the server's instance, which must not be changed; nil if it is gone. A copy would cost what its status lists: a thousand
// zones, for each notification.
func (s *stream) instance(ctx context.Context) *v1beta1.Bind9Instance {
	instance := &v1beta1.Bind9Instance{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.server.pod.Namespace, Name: s.server.instance}, instance, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return instance
}

// servedZones returns those of some zones that the server's instance serves.
func (s *stream) servedZones(ctx context.Context, zones []*v1beta1.DNSZone) []*v1beta1.DNSZone {
	if len(zones) == 0 {
		return nil
	}
	instance := s.instance(ctx)
	all, err := inventory.Read(ctx, s.Client, s.SystemNamespace)
	if instance == nil || err != nil {
		return nil
	}
	var served []*v1beta1.DNSZone
	for _, zone := range zones {
		if all.Serves(instance, zone) {
			served = append(served, zone)
		}
	}
	return served
}
