package syncstatus

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Problem is why a declaration is not part of what its zone serves.
type Problem struct{ Reason, Message string }

// Declared is the desired side of one zone, prepared once and judged many times. It is immutable and safe for
// concurrent use.
type Declared struct {
	zone    *v1beta1.DNSZone
	desired *source.Zone // nil when problem is set
	problem *Problem
	records map[types.UID]*declaration
	// pending holds what the controller has not programmed yet, and keys that must go away.
	pending map[rrset.Key]bool
}

// declaration is one record in its zone.
type declaration struct {
	object v1beta1.Record
	source *source.Declaration // nil for a record being deleted, or when the zone has a problem
	// keys are the RRsets that the record is judged by: its own, and the one under its former name while that may
	// still be published.
	keys    []rrset.Key
	pending bool
}

// Declare prepares a zone. desired was built from the records that are not being deleted; records holds all that
// belong to the zone, those being deleted included. When problem is set nothing of the zone is served and desired may
// be nil.
func Declare(zone *v1beta1.DNSZone, desired *source.Zone, records []v1beta1.Record, problem *Problem) *Declared {
	d := &Declared{
		zone: zone, desired: desired, problem: problem,
		records: make(map[types.UID]*declaration, len(records)),
		pending: map[rrset.Key]bool{},
	}
	if desired == nil && problem == nil {
		d.problem = &Problem{Reason: status.Invalid, Message: "the zone could not be read"}
	}
	bySource := d.declarationsByUID()
	for _, r := range records {
		decl := d.declare(r, bySource[r.GetUID()])
		d.records[r.GetUID()] = decl
		if decl.pending {
			for _, k := range decl.keys {
				d.pending[k] = true
			}
		}
	}
	return d
}

func (d *Declared) declarationsByUID() map[types.UID]*source.Declaration {
	m := map[types.UID]*source.Declaration{}
	if d.desired == nil {
		return m
	}
	for i := range d.desired.Declarations {
		decl := &d.desired.Declarations[i]
		m[decl.Ref.UID] = decl
	}
	return m
}

func (d *Declared) declare(r v1beta1.Record, s *source.Declaration) *declaration {
	decl := &declaration{object: r, source: s}
	kind := v1beta1.KindOf(r)
	st := r.GetRecordStatus()
	published := rrset.Key{Type: kind.RRType}
	if st.PublishedName != "" && (st.Zone == "" || sameName(st.Zone, d.zone.Spec.ZoneName)) {
		published.Name = absolute(st.PublishedName)
	}
	deleting := r.GetDeletionTimestamp() != nil
	switch {
	case deleting && published.Name == "":
		if owner, err := source.OwnerName(r.RecordName(), d.ZoneName()); err == nil {
			published.Name = owner
		}
	case !deleting && s != nil && s.Accepted:
		decl.keys = append(decl.keys, s.Key)
	}
	if published.Name != "" && (len(decl.keys) == 0 || decl.keys[0] != published) {
		decl.keys = append(decl.keys, published)
	}
	decl.pending = deleting || isPending(r, s)
	return decl
}

// isPending tells whether the controller has yet to programme the record as it is declared now. A change that the
// controller gave up on is not pending: waiting does not help it.
func isPending(r v1beta1.Record, s *source.Declaration) bool {
	if stalled(r) != nil {
		return false
	}
	st := r.GetRecordStatus()
	if s == nil || !s.Accepted {
		// What it published before it stopped being acceptable is on its way out while a name is recorded.
		return st.PublishedName != "" && st.ObservedGeneration < r.GetGeneration()
	}
	return st.ObservedGeneration < r.GetGeneration() || st.RecordHash != source.Hash(*s)
}

// terminal are reasons of Programmed that no waiting cures: a server refused the data or ignored it, or what somebody
// else put into the zone is in the way.
var terminal = map[string]bool{
	status.ReconcileFailed: true, status.Conflict: true, status.Invalid: true, status.ProgressDeadlineExceeded: true,
}

// stalled gives the controller's own verdict when it has given up on the record's present generation.
func stalled(r v1beta1.Record) *metav1.Condition {
	c := meta.FindStatusCondition(r.GetRecordStatus().Conditions, status.Programmed)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != r.GetGeneration() || !terminal[c.Reason] {
		return nil
	}
	return c
}

// want gives the RRset that servers should hold at a key; it has no data when the key must not exist.
func (d *Declared) want(k rrset.Key) rrset.RRset {
	if d.desired != nil {
		if s, ok := d.desired.RRsets[k]; ok {
			return s.RRset
		}
	}
	return rrset.RRset{Key: k}
}

// ZoneName is the zone's canonical name, with the final dot.
func (d *Declared) ZoneName() string {
	if d.desired != nil {
		return d.desired.Name
	}
	return absolute(d.zone.Spec.ZoneName)
}

// zonePending tells whether the controller has yet to bring the zone itself to its servers.
func (d *Declared) zonePending() bool {
	st := d.zone.Status
	return d.zone.DeletionTimestamp != nil || st.ObservedGeneration < d.zone.Generation ||
		meta.IsStatusConditionTrue(st.Conditions, status.Progressing)
}

// instance is how far the controller says the zone is configured on an instance.
func (d *Declared) instance(namespace, name string) (v1beta1.ZoneInstance, bool) {
	for _, i := range d.zone.Status.Bind9Instances {
		if i.Namespace == namespace && i.Name == name {
			return i, true
		}
	}
	return v1beta1.ZoneInstance{}, false
}

func absolute(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, ".")) + "."
}

func sameName(a, b string) bool { return absolute(a) == absolute(b) }
