package syncstatus

import (
	"slices"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// keysOf are the RRsets by which an object is judged in the zone: own are those that it declares, left those that have
// to go away for its sake, or that it had under a former name and that may still be published.
func (d *Declared) keysOf(o source.Object, leaving bool) (own, left []rrset.Key) {
	if leaving || o.GetDeletionTimestamp() != nil {
		return nil, source.PublishedKeys(o, d.ZoneName())
	}
	for _, decl := range d.declarations(o) {
		if decl.Accepted && !slices.Contains(own, decl.Key) {
			own = append(own, decl.Key)
		}
	}
	if past := withoutSpec(o, own); past != nil {
		left = slices.DeleteFunc(source.PublishedKeys(past, d.ZoneName()), func(k rrset.Key) bool { return slices.Contains(own, k) })
	}
	return own, left
}

// declarations are those of an object as it is in the zone; none while the zone knows another object of that name.
func (d *Declared) declarations(o source.Object) []source.Declaration {
	if d.desired == nil {
		return nil
	}
	key := source.KeyOf(o)
	if _, ok := o.(v1beta1.Record); ok {
		decl, known := d.desired.Declarations.Get(source.ID{ObjectKey: key})
		if !known || decl.Ref.UID != o.GetUID() {
			return nil
		}
		return []source.Declaration{decl}
	}
	var all []source.Declaration
	for _, decl := range d.desired.Of(key) {
		if decl.Ref.UID == o.GetUID() {
			all = append(all, decl)
		}
	}
	return all
}

// withoutSpec is what an object says about where its data may be, its spec apart; nil when it says no more than own.
func withoutSpec(o source.Object, own []rrset.Key) source.Object {
	former := o.GetAnnotations()[v1beta1.FormerNamesAnnotation]
	switch o := o.(type) {
	case v1beta1.Record:
		st := o.GetRecordStatus()
		if moved := st.PublishedName != "" && (len(own) == 0 || absolute(st.PublishedName) != own[0].Name); moved || former != "" {
			past := v1beta1.KindOf(o).New()
			past.SetAnnotations(map[string]string{v1beta1.FormerNamesAnnotation: former})
			*past.GetRecordStatus() = v1beta1.RecordStatus{PublishedName: st.PublishedName, Zone: st.Zone}
			return past
		}
	case *v1alpha1.DNSEndpoint:
		if former != "" || len(o.Status.Zones) > 0 {
			return &v1alpha1.DNSEndpoint{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.FormerNamesAnnotation: former}},
				Status:     v1alpha1.DNSEndpointStatus{Zones: o.Status.Zones},
			}
		}
	}
	return nil
}

// pendingKeys are the RRsets that the controller has yet to bring to what an object declares. What it gave up on is not
// pending: waiting does not help it.
func (d *Declared) pendingKeys(m membership.Member) []rrset.Key {
	if m.Object == nil {
		return nil
	}
	own, left := d.keysOf(m.Object, m.Role == membership.Leaving)
	switch m.Role {
	case membership.Leaving:
		return left
	case membership.Selected, membership.Contested:
	default:
		return nil
	}
	switch o := m.Object.(type) {
	case v1beta1.Record:
		return d.pendingOfRecord(o, own, left)
	case *v1alpha1.DNSEndpoint:
		return d.pendingOfEndpoint(o, own, left)
	}
	return nil
}

func (d *Declared) pendingOfRecord(r v1beta1.Record, own, left []rrset.Key) []rrset.Key {
	st := r.GetRecordStatus()
	behind := st.ObservedGeneration < r.GetGeneration()
	switch {
	case stalled(r) != nil:
		return nil
	case len(own) == 0 && !behind: // What it published before it stopped being acceptable.
		return nil
	case behind || st.RecordHash != source.Hash(d.declarations(r)[0]):
		return append(own, left...)
	}
	return left
}

func (d *Declared) pendingOfEndpoint(e *v1alpha1.DNSEndpoint, own, left []rrset.Key) []rrset.Key {
	if stalled(e) != nil {
		return nil
	}
	if e.Status.ObservedGeneration < e.Generation {
		return append(own, left...)
	}
	programmed := map[string]bool{}
	for _, z := range e.Status.Zones {
		for _, s := range z.RRsets {
			programmed[s] = programmed[s] || z.Namespace == d.zone.Namespace && z.Name == d.zone.Name
		}
	}
	own = slices.DeleteFunc(own, func(k rrset.Key) bool { return programmed[k.Name+"/"+dns.Type(k.Type).String()] })
	return append(own, left...)
}

// terminal are reasons of Programmed that no waiting cures: a server refused the data or ignored it, or what somebody
// else put into the zone is in the way.
var terminal = map[string]bool{
	status.ReconcileFailed: true, status.Conflict: true, status.Invalid: true, status.ProgressDeadlineExceeded: true,
}

// stalled gives the controller's own verdict when it has given up on the object's present generation.
func stalled(o source.Object) *metav1.Condition {
	c := meta.FindStatusCondition(conditionsOf(o), status.Programmed)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != o.GetGeneration() || !terminal[c.Reason] {
		return nil
	}
	return c
}

// conditionsOf are the conditions that the controller wrote into an object.
func conditionsOf(o source.Object) []metav1.Condition {
	switch o := o.(type) {
	case v1beta1.Record:
		return o.GetRecordStatus().Conditions
	case *v1alpha1.DNSEndpoint:
		return o.Status.Conditions
	}
	return nil
}
