package store

import (
	"encoding/binary"
	"hash/maphash"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// Digest returns a hash of what makes one SyncStatus different from another to a watcher: everything but times, round trips,
// and the serials of servers that are in sync, which move with every change anywhere in the zone. A zone's own serials count.
func (st *Store) Digest(s *syncv1.SyncStatus) uint64 {
	d := digester{}
	d.SetSeed(st.seed)
	d.writeText(string(s.UID), s.Zone, string(s.Status.Phase), s.Status.FailureReason, s.Status.FailureMessage)
	d.writeNumber(s.Generation)
	var labels uint64
	for k, v := range s.Labels {
		labels ^= maphash.String(st.seed, k+"\x00"+v)
	}
	d.writeNumber(int64(labels)) //nolint:gosec // bits
	for _, c := range s.Status.Conditions {
		d.writeText(c.Type, string(c.Status), c.Reason, c.Message)
	}
	d.writeRRsets(s.RRsets)
	isZone := s.ObjectRef.Kind == syncstatus.ZoneKind.Kind
	for i := range s.Servers {
		d.writeServer(&s.Servers[i], isZone)
	}
	for _, n := range s.NameServers {
		d.writeText(n.Name, string(n.LeadsTo), n.Message)
		d.writeText(n.Addresses...)
		d.writeText(n.Instances...)
		d.writeText(n.MissingOn...)
	}
	d.writeNumber(int64(s.Summary.Records))
	d.writeNumber(int64(s.Summary.RecordsOutOfSync))
	return d.Sum64()
}

type digester struct{ maphash.Hash }

func (d *digester) writeText(values ...string) {
	for _, v := range values {
		_, _ = d.WriteString(v)
		_ = d.WriteByte(0)
	}
}

func (d *digester) writeNumber(n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // bits
	_, _ = d.Write(b[:])
}

func (d *digester) writeFlag(b bool) {
	if b {
		_ = d.WriteByte(1)
	} else {
		_ = d.WriteByte(2)
	}
}

func (d *digester) writeRRsets(sets []syncv1.RRset) {
	d.writeNumber(int64(len(sets)))
	for _, r := range sets {
		d.writeText(r.Name, r.Type)
		if r.TTL != nil {
			d.writeNumber(*r.TTL)
		}
		d.writeText(r.Rdata...)
	}
}

func (d *digester) writeServer(r *syncv1.ServerStatus, serials bool) {
	d.writeText(r.Zone, r.Instance, r.Pod, r.Address, r.Role, string(r.PodPhase), string(r.State), r.Rcode, r.Message)
	d.writeFlag(r.PodReady)
	d.writeFlag(r.Authoritative)
	d.writeRRsets(r.Observed)
	if r.Records != nil {
		d.writeNumber(int64(r.Records.InSync))
		d.writeNumber(int64(r.Records.OutOfSync))
		d.writeNumber(int64(r.Records.Undeclared))
	}
	d.writeText(r.Version, r.Sidecar)
	d.writeNumber(int64(r.Restarts))
	if z := r.Zones; z != nil {
		d.writeNumber(int64(z.InSync))
		d.writeNumber(int64(z.OutOfSync))
		for _, w := range z.Worst {
			if w.State != syncv1.StateInSync {
				d.writeText(w.Zone, string(w.State))
			}
		}
	}
	if serials && r.Serial != nil {
		d.writeNumber(*r.Serial)
	}
}
