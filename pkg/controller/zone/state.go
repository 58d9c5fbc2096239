package zone

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// zoneState is what is kept of a zone between passes, so that a pass costs what changed. Passes over one zone never run at
// the same time: nothing here is guarded. All of it can be made anew from Kubernetes and the servers, and is whenever there
// is a doubt.
type zoneState struct {
	// What the builder was made for.
	uid        types.UID
	generation int64
	addresses  []netip.Addr

	builder *source.Builder
	owns    func(namespace, dnsName string) bool
	// desired is what the builder gave last; nil before the first pass.
	desired *source.Zone
	// leaving and also are the objects that have data in the zone, belong there no more and were not let go of since they
	// changed, and those that the zone selects and an older zone has.
	leaving, also map[source.ObjectKey]source.Object
	// retired are the RRsets that we published or may have, and that are not desired: only these may be deleted. They
	// stay until every primary was seen without them.
	retired map[rrset.Key]struct{}
	// added are the RRsets that somebody else has put on a primary lately and that not all of them hold yet.
	added plan.Map
	// prune is true while everything that nobody declares may be deleted.
	prune bool

	primaries   map[pod]*primaryState
	secondaries map[pod]*secondaryState
	// verified are the secondaries whose content is known to follow from the primaries' (only of several primaries).
	verified map[pod]struct{}
	peers    map[pod]peers
	// following are the primaries that are known to have the zone as secondaries, because another signs it.
	following map[pod]struct{}

	// dnssec is how the zone was signed when its signer was last looked at.
	dnssec      *v1beta1.DNSSECStatus
	dnssecKnown bool

	// told is what the last event said.
	told lastWord
}

// pod names a server's pod.
type pod struct{ namespace, name string }

func podOf(s observe.Server) pod { return pod{s.Namespace, s.Pod} }

// lastWord is what an event told that is neither in the desired zone nor of one object.
type lastWord struct {
	any          bool
	problem      status.Verdict
	unprogrammed map[rrset.Key]status.Verdict
	desired      *source.Zone
}

// states keeps the state of every zone.
type states struct {
	mu     sync.Mutex
	byZone map[zoneKey]*zoneState
}

// of gives the state of a zone, which is empty for one that is new.
func (s *states) of(zone *v1beta1.DNSZone) *zoneState {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := membership.KeyOfZone(zone)
	if known := s.byZone[key]; known != nil && known.uid == zone.UID {
		return known
	}
	if s.byZone == nil {
		s.byZone = map[zoneKey]*zoneState{}
	}
	s.byZone[key] = &zoneState{
		uid: zone.UID, retired: map[rrset.Key]struct{}{}, added: plan.Map{}, primaries: map[pod]*primaryState{},
		secondaries: map[pod]*secondaryState{}, verified: map[pod]struct{}{}, peers: map[pod]peers{},
		following: map[pod]struct{}{},
	}
	return s.byZone[key]
}

func (s *states) drop(key zoneKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byZone, key)
}

// fits tells whether the builder is one for the zone as it is; else it has to be made anew, with all objects.
func (s *zoneState) fits(zone *v1beta1.DNSZone, addresses []netip.Addr) bool {
	return s.builder != nil && s.generation == zone.Generation && slices.Equal(s.addresses, addresses)
}

// begin makes a new builder. What the servers hold and what was published is still known.
func (s *zoneState) begin(zone *v1beta1.DNSZone, opts source.Options) error {
	builder, err := source.NewBuilder(zone, opts)
	if err != nil {
		s.builder = nil
		return err
	}
	s.builder, s.owns, s.generation, s.addresses = builder, opts.Owns, zone.Generation, opts.ServerAddresses
	s.leaving, s.also = map[source.ObjectKey]source.Object{}, map[source.ObjectKey]source.Object{}
	return nil
}

// set takes over what an object is to the zone now.
func (s *zoneState) set(m membership.Member) {
	delete(s.leaving, m.Key)
	delete(s.also, m.Key)
	if m.Role != membership.Selected {
		s.builder.Remove(m.Key)
	}
	switch m.Role {
	case membership.Selected:
		s.builder.Set(m.Object)
	case membership.Leaving:
		s.leaving[m.Key] = m.Object
	case membership.AlsoSelected:
		s.also[m.Key] = m.Object
	case membership.NoRole, membership.Contested:
	}
}

// refresh makes the desired zone after objects were set. What was desired and is no more is retired, and so is what these
// objects have, or may have, in DNS.
func (s *zoneState) refresh(changed []membership.Member) {
	next := s.builder.Zone()
	last := s.desired
	s.desired = next
	if last != nil && last != next {
		for name := range next.ChangedNames(last) {
			for set := range last.At(name) {
				s.retire(set.Key)
			}
		}
	}
	for _, m := range changed {
		if m.Role == membership.Selected || m.Role == membership.Leaving {
			for _, key := range s.keysOf(m.Object) {
				s.retire(key)
			}
		}
	}
}

// keysOf are the RRsets of the zone that an object has data in, as far as its status, its spec and its annotation of former
// names tell: a crash between an update and the status that tells of it leaves data that only the spec knows.
func (s *zoneState) keysOf(o source.Object) []rrset.Key {
	keys := source.PublishedKeys(o, s.desired.Name)
	if e, ok := o.(*v1alpha1.DNSEndpoint); ok {
		return slices.DeleteFunc(keys, func(key rrset.Key) bool { return !s.mayHold(e, key) })
	}
	return keys
}

// mayHold tells whether a name that a DNSEndpoint has is, or was, this zone's and not that of a zone below it.
func (s *zoneState) mayHold(e *v1alpha1.DNSEndpoint, key rrset.Key) bool {
	told := key.Name + "/" + dns.TypeToString[key.Type]
	return s.owns(e.Namespace, key.Name) || slices.ContainsFunc(e.Status.Zones, func(z v1alpha1.EndpointZone) bool {
		return slices.Contains(z.RRsets, told)
	})
}

// retire notes that an RRset may be deleted where it is and nobody wants it.
func (s *zoneState) retire(key rrset.Key) {
	if _, known := s.retired[key]; known {
		return
	}
	if _, wanted := s.desired.Get(key); wanted {
		return
	}
	s.retired[key] = struct{}{}
	for _, p := range s.primaries {
		p.look(key.Name)
	}
}

// owned tells whether an RRset that nobody wants may be deleted.
func (s *zoneState) owned(key rrset.Key) bool {
	if s.prune {
		return true
	}
	_, ok := s.retired[key]
	return ok
}

// forget drops retired RRsets that no primary holds any more: who publishes there later is somebody else.
func (s *zoneState) forget(gone func(rrset.Key) bool) {
	for key := range s.retired {
		if _, wanted := s.desired.Get(key); wanted || gone(key) {
			delete(s.retired, key)
		}
	}
}
