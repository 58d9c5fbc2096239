package store

import (
	"hash/maphash"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Digest hashes what makes one SyncStatus different from another to a watcher: everything but times, round trips, and the serials of
// servers that are in sync, which move with every change anywhere in the zone. A zone's own serials count. The chain does not: it is
// there only for whoever asks for the SyncStatus by name, and what follows from it is in servers. TestDigest has all that is left out.
func (st *Store) Digest(s *syncv1.SyncStatus) uint64 {
	h := &maphash.Hash{}
	h.SetSeed(st.seed)
	addValues(h, s.ObjectRef)
	addValues(h, s.Summary)
	var labels uint64
	for k, v := range s.Labels {
		labels ^= maphash.String(st.seed, k+"\x00"+v)
	}
	addValues(h, labels)
	addStrings(h, s.Zone, string(s.Status.Phase), s.Status.FailureReason, s.Status.FailureMessage)
	addValues(h, s.Status.InSync)
	for _, c := range s.Status.Conditions {
		addStrings(h, c.Type, string(c.Status), c.Reason, c.Message)
		addValues(h, c.ObservedGeneration)
	}
	addRRsets(h, s.RRsets)
	isZone := s.ObjectRef.Kind == subject.ZoneKind.Kind
	for i := range s.Servers {
		addServer(h, &s.Servers[i], isZone)
	}
	for _, n := range s.NameServers {
		addStrings(h, n.Name, string(n.LeadsTo), n.Message)
		addLists(h, n.Addresses, n.Instances, n.MissingOn)
	}
	for _, p := range s.Paths {
		addStrings(h, string(p.Type), p.Vantage, p.Namespace, p.Instance, p.Provider, p.Address, string(p.Protocol), string(p.State), p.Rcode, p.Message)
		addLists(h, p.NameServers)
	}
	return h.Sum64()
}

// addStrings adds strings, each with an end that none of them contains.
func addStrings(h *maphash.Hash, values ...string) {
	for _, v := range values {
		_, _ = h.WriteString(v) // It never fails.
		_ = h.WriteByte(0xff)
	}
}

// addLists adds lists of strings, each with its length.
func addLists(h *maphash.Hash, lists ...[]string) {
	for _, list := range lists {
		addValues(h, len(list))
		addStrings(h, list...)
	}
}

func addValues[T comparable](h *maphash.Hash, values ...T) {
	for _, v := range values {
		maphash.WriteComparable(h, v)
	}
}

func addRRsets(h *maphash.Hash, sets []syncv1.RRset) {
	addValues(h, len(sets))
	for _, r := range sets {
		addStrings(h, r.Name, r.Type)
		if r.TTL != nil {
			addValues(h, *r.TTL)
		}
		addLists(h, r.Rdata)
		addValues(h, r.Omitted)
	}
}

func addServer(h *maphash.Hash, r *syncv1.ServerStatus, serials bool) {
	addStrings(h, r.Zone, r.Namespace, r.Instance, r.Provider, r.Pod, r.ReadBy, r.Address, r.Role, string(r.PodPhase))
	addStrings(h, string(r.State), r.Rcode, r.ShadowedBy, string(r.Security), r.SecurityCause, r.Version, r.Sidecar, r.Message)
	addValues(h, r.PodReady, r.Authoritative)
	addValues(h, r.KeyTags...)
	addRRsets(h, r.Observed)
	if r.Records != nil {
		addValues(h, *r.Records)
	}
	addValues(h, r.Restarts)
	if z := r.Zones; z != nil {
		addValues(h, z.InSync, z.OutOfSync)
		for _, w := range z.Worst {
			if w.State != syncv1.StateInSync {
				addStrings(h, w.Zone, string(w.State), w.Message)
			}
		}
	}
	if serials && r.Serial != nil {
		addValues(h, *r.Serial)
	}
}
