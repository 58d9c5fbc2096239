package engine

import (
	"encoding/binary"
	"hash/maphash"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// digest condenses what makes one SyncStatus different from another to somebody who watches: all but times, round
// trips, and the serials of servers that are in step, which move with every change anywhere in the zone. A zone's own
// serials count.
func (m *memory) digest(s *syncv1.SyncStatus) uint64 {
	d := digester{}
	d.SetSeed(m.seed)
	d.text(string(s.UID), s.Zone, string(s.Status.Phase), s.Status.FailureReason, s.Status.FailureMessage)
	d.number(s.Generation)
	var labels uint64
	for k, v := range s.Labels {
		labels ^= maphash.String(m.seed, k+"\x00"+v)
	}
	d.number(int64(labels)) //nolint:gosec // bits
	for _, c := range s.Status.Conditions {
		d.text(c.Type, string(c.Status), c.Reason, c.Message)
	}
	d.sets(s.RRsets)
	isZone := s.ObjectRef.Kind == syncstatus.ZoneKind.Kind
	for i := range s.Servers {
		d.server(&s.Servers[i], isZone)
	}
	for _, n := range s.NameServers {
		d.text(n.Name, string(n.LeadsTo), n.Message)
		d.text(n.Addresses...)
		d.text(n.Instances...)
		d.text(n.MissingOn...)
	}
	d.number(int64(s.Summary.Records))
	d.number(int64(s.Summary.RecordsOutOfSync))
	return d.Sum64()
}

type digester struct{ maphash.Hash }

func (d *digester) text(values ...string) {
	for _, v := range values {
		_, _ = d.WriteString(v)
		_ = d.WriteByte(0)
	}
}

func (d *digester) number(n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // bits
	_, _ = d.Write(b[:])
}

func (d *digester) flag(b bool) {
	if b {
		_ = d.WriteByte(1)
	} else {
		_ = d.WriteByte(2)
	}
}

func (d *digester) sets(sets []syncv1.RRset) {
	d.number(int64(len(sets)))
	for _, r := range sets {
		d.text(r.Name, r.Type)
		if r.TTL != nil {
			d.number(*r.TTL)
		}
		d.text(r.Rdata...)
	}
}

func (d *digester) server(r *syncv1.ServerStatus, serials bool) {
	d.text(r.Zone, r.Instance, r.Pod, r.Address, r.Role, string(r.PodPhase), string(r.State), r.Rcode, r.Message)
	d.flag(r.PodReady)
	d.flag(r.Authoritative)
	d.sets(r.Observed)
	if r.Records != nil {
		d.number(int64(r.Records.InSync))
		d.number(int64(r.Records.OutOfSync))
		d.number(int64(r.Records.Undeclared))
	}
	d.text(r.Version, r.Sidecar)
	d.number(int64(r.Restarts))
	if z := r.Zones; z != nil {
		d.number(int64(z.InSync))
		d.number(int64(z.OutOfSync))
		for _, w := range z.Worst {
			if w.State != syncv1.StateInSync {
				d.text(w.Zone, string(w.State))
			}
		}
	}
	if serials && r.Serial != nil {
		d.number(*r.Serial)
	}
}
