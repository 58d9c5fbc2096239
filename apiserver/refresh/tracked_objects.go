package refresh

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// trackedObject is one object that a tracker follows.
type trackedObject struct {
	key   desired.Key
	zones []desired.ZoneKey
	// published is set once the tracker has published a verdict.
	published bool
	// confirmed is the digest of a verdict by which data is wrong and which has been looked at again.
	confirmed uint64
	// asking is true while the servers of an instance or a cluster are being asked, again when they are to be once more.
	asking, again bool
}

// followAll follows what watches are interested in, and nothing else.
func (t *tracker) followAll(named map[desired.Key]bool, everything bool) {
	t.everything = everything
	if everything {
		clear(named)
		for _, kind := range t.refresher.informers.TrackedKinds() {
			for _, k := range t.refresher.informers.Keys(kind, t.namespace) {
				named[k] = true
			}
		}
	}
	for k := range t.objects {
		if !named[k] {
			t.forgetObject(k)
		}
	}
	for k := range named {
		t.followObject(k)
	}
}

// serversInterval is how often a tracker looks at all its zones because of changes of instances, pods and providers, and serversShare the part
// of its time that this takes at most: anybody may have some, and change them all the time.
const (
	serversInterval = 100 * time.Millisecond
	serversShare    = 5
)

// followServersInTurn is followServers, at once or, if the last time is not long ago, later.
func (t *tracker) followServersInTurn(named map[desired.Key]bool, everything bool) {
	began := time.Now()
	if wait := t.serversAt.Sub(began); wait > 0 {
		if !t.serversDue {
			t.serversDue = true
			time.AfterFunc(wait, func() { t.addNews(func(n *news) { n.servers = true }) })
		}
		return
	}
	t.serversDue = false
	t.followServers(named, everything)
	t.serversAt = time.Now().Add(max(serversInterval, (serversShare-1)*time.Since(began)))
}

// followServers follows a change of instances or pods, or of zones above some that share nothing with them.
func (t *tracker) followServers(named map[desired.Key]bool, everything bool) {
	for zone := range t.zones {
		if key := desired.KeyOf(zone); t.objects[key] != nil {
			t.followObject(key) // It may have another zone above.
		} else {
			t.refreshZone(zone)
		}
	}
	for _, kind := range subject.FleetKinds {
		for _, k := range t.refresher.informers.Keys(kind.Kind, t.namespace) {
			if everything || named[k] {
				t.followObject(k)
			}
		}
	}
}

// followObject follows an object as it is now.
func (t *tracker) followObject(key desired.Key) {
	s, exists := t.refresher.index.Resolve(key)
	if !exists {
		t.forgetObject(key)
		return
	}
	o := t.objects[key]
	if o == nil {
		o = &trackedObject{key: key}
		t.objects[key] = o
	}
	for _, zone := range o.zones {
		if !slices.Contains(s.ZoneKeys, zone) {
			t.leaveZone(zone, key)
		}
	}
	o.zones = s.ZoneKeys
	for i, z := range s.Zones {
		w := t.followZone(z.Key)
		w.members[key] = struct{}{}
		if i > 0 && key.Kind == subject.ZoneKind.Kind {
			w.children[s.Zones[0].Declared.ZoneName()] = key
		}
		w.suspect(key)
		t.adoptZone(w, z)
	}
	switch {
	case informers.DescribesServers(key.Kind):
		if o.published {
			t.publishAlone(o)
		}
		t.askFleet(o, t.refresher.options.WatchInterval/2)
	case len(s.Zones) == 0:
		t.publishAlone(o)
	}
}

func (t *tracker) forgetObject(key desired.Key) {
	o := t.objects[key]
	if o == nil {
		return
	}
	delete(t.objects, key)
	for _, zone := range o.zones {
		t.leaveZone(zone, key)
	}
}

// fleetPollFactor is by how much the servers of instances and clusters are polled less often than those of zones.
const fleetPollFactor = 4

// askFleet asks the servers of a followed instance or cluster, as far as their last answers are older than some time; handleAnsweredFleet
// follows.
func (t *tracker) askFleet(o *trackedObject, age time.Duration) {
	if o.asking {
		o.again = true
		return
	}
	s, exists := t.refresher.index.Resolve(o.key)
	if !exists {
		return
	}
	o.asking = true
	key, since := o.key, time.Now().Add(-age)
	polled := map[evaluate.Place]bool{}
	for _, w := range t.zones {
		for i := range w.zone.Servers {
			polled[w.placeOf(i)] = true
		}
	}
	t.inBackground(func() func() {
		questions := t.refresher.asker.AskFleets(t.ctx, since, polled, s.Object)
		return func() { t.handleAnsweredFleet(key, questions) }
	})
}

func (t *tracker) handleAnsweredFleet(key desired.Key, questions int) {
	o := t.objects[key]
	if o == nil {
		return
	}
	o.asking = false
	t.fleetQuestions = max(t.fleetQuestions, questions)
	t.publishAlone(o)
	if o.again {
		o.again = false
		t.askFleet(o, t.refresher.options.WatchInterval/2)
	}
}

// pollFleets asks the servers of all followed instances and clusters when it is time: the more questions, the less often. About a zone that
// somebody else asks about, it asks nothing.
func (t *tracker) pollFleets(interval time.Duration) {
	if time.Since(t.fleetsAsked) < max(fleetPollFactor*interval, time.Duration(t.fleetQuestions)*pollPerServer) {
		return
	}
	t.fleetsAsked, t.fleetQuestions = time.Now(), 0
	for key, o := range t.objects {
		if informers.DescribesServers(key.Kind) && !o.asking {
			t.askFleet(o, pollRounds*interval)
		}
	}
}
