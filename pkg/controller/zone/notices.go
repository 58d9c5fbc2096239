package zone

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// Pace of the sentries.
const (
	// rollCall is how often the servers are counted.
	rollCall = time.Second
	// surveyEvery is how often a server that tells nothing by itself is asked for the serials of its zones, with so many
	// questions at once, and tellAgain after how long it is asked whether it has learned to.
	surveyEvery     = 5 * time.Second
	surveyQuestions = 16
	tellAgain       = 5 * time.Minute
)

// sentries listen to every ready server: a serial that is not the expected one has its zone looked at. So a change that
// somebody else makes is found, and undone, when it happens. It is a runnable of the manager, for the leader alone.
type sentries struct {
	*zoneReconciler
	posts map[post]context.CancelFunc
}

// post is where a sentry stands: a pod's address changes when the pod does.
type post struct {
	pod
	instance string
	addr     netip.AddrPort
}

// Start implements manager.Runnable.
func (s *sentries) Start(ctx context.Context) error {
	ticker := time.NewTicker(rollCall)
	defer ticker.Stop()
	for {
		if err := s.call(ctx); err != nil {
			log.FromContext(ctx).Info("the servers could not be counted", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// call posts a sentry at every server that has none, and withdraws those of servers that are gone.
func (s *sentries) call(ctx context.Context) error {
	instances, err := fleet.ListLiveInstances(ctx, s.client)
	if err != nil {
		return err
	}
	servers, err := fleet.ListServers(ctx, s.client, instances)
	if err != nil {
		return err
	}
	ready := map[post]bool{}
	for _, server := range servers {
		if server.Addr.IsValid() && server.PodReady {
			ready[post{podOf(server), server.Instance, server.Addr}] = true
		}
	}
	for at, withdraw := range s.posts {
		if !ready[at] {
			withdraw()
			delete(s.posts, at)
		}
	}
	for at := range ready {
		if s.posts[at] == nil {
			own, withdraw := context.WithCancel(ctx)
			s.posts[at] = withdraw
			go bindcar.FollowNotifications(own, s.streamOf(at), listener{s, at})
		}
	}
	return nil
}

// streamOf opens the notification stream of a server.
func (s *sentries) streamOf(at post) func(context.Context, func(bindcar.Notice)) error {
	sidecar := fleet.SidecarOf(observe.Server{Addr: at.addr, Namespace: at.namespace, Instance: at.instance})
	return func(ctx context.Context, fn func(bindcar.Notice)) error {
		return s.deps.Sidecar.Notices(ctx, sidecar, fn)
	}
}

// listener handles the notifications of one server.
type listener struct {
	*sentries
	at post
}

// HandleNotification implements bindcar.NotificationHandler.
func (l listener) HandleNotification(ctx context.Context, n bindcar.Notice) {
	switch {
	case n.Lost:
		l.survey(ctx, l.at)
	case n.Zone != "":
		for _, zone := range l.zonesAt(ctx, l.at, l.world.members.ZonesNamed(n.Zone)) {
			if key := membership.KeyOfZone(zone); !l.serials.expected(key, n.Serial) {
				l.world.wake(key)
			}
		}
	}
}

// HandleStreamClosed implements bindcar.NotificationHandler.
func (l listener) HandleStreamClosed(ctx context.Context, err error) {
	if bindcar.IsNotSupported(err) {
		l.surveyFor(ctx, l.at, tellAgain)
		return
	}
	log.FromContext(ctx).V(1).Info("notification stream closed; reconnecting", "server", l.at.name, "reason", err.Error())
}

// surveyFor asks a server that has no notices now and then.
func (s *sentries) surveyFor(ctx context.Context, at post, long time.Duration) {
	for end := time.Now().Add(long); time.Now().Before(end) && ctx.Err() == nil; {
		s.survey(ctx, at)
		rest(ctx, jitter(surveyEvery))
	}
}

// survey asks a server for the serials of all its zones, and has those looked at that are not as expected.
func (s *sentries) survey(ctx context.Context, at post) {
	var group errgroup.Group
	group.SetLimit(surveyQuestions)
	for _, zone := range s.zonesAt(ctx, at, s.world.members.Zones()) {
		key := membership.KeyOfZone(zone)
		name, err := source.ZoneName(zone.Spec.ZoneName)
		if err != nil || ctx.Err() != nil || s.silence.is(at.addr) {
			continue
		}
		group.Go(func() error {
			seen := s.deps.Observer.Serial(ctx, at.addr, name)
			s.silence.note(ctx, key, name, seen)
			if seen.Rcode != observe.NoReply && !s.serials.expected(key, seen.Serial) {
				s.world.wake(key)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// zonesAt are those of some zones that the server's instance serves.
func (s *sentries) zonesAt(ctx context.Context, at post, zones []*v1beta1.DNSZone) []*v1beta1.DNSZone {
	instance := &v1beta1.Bind9Instance{}
	if err := s.client.Get(ctx, zoneKey{Namespace: at.namespace, Name: at.instance}, instance); err != nil {
		return nil
	}
	var served []*v1beta1.DNSZone
	for _, zone := range zones {
		if membership.Serves(instance, zone) {
			served = append(served, zone)
		}
	}
	return served
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
