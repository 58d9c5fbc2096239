package syncstatus

import (
	"slices"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// keysOf are the RRsets on which an object's state in the zone depends: own are those that it declares, left those that have to be
// removed because of it, or that may still be published under a former name.
func (d *DesiredState) keysOf(o source.Object, leaving bool) (own, left []rrset.Key) {
	if leaving || o.GetDeletionTimestamp() != nil {
		return nil, source.PublishedKeys(o, d.ZoneName())
	}
	for _, decl := range d.declarationsOf(o) {
		if decl.Accepted && !slices.Contains(own, decl.Key) {
			own = append(own, decl.Key)
		}
	}
	if past := formerObject(o, own); past != nil {
		left = slices.DeleteFunc(source.PublishedKeys(past, d.ZoneName()), func(k rrset.Key) bool { return slices.Contains(own, k) })
	}
	return own, left
}

// declarationsOf are those of an object in the zone; none while the zone has another object of that name.
func (d *DesiredState) declarationsOf(o source.Object) []source.Declaration {
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

// formerObject is an object with what o records of where its data may be, without its spec; nil if that is no more than own.
func formerObject(o source.Object, own []rrset.Key) source.Object {
	former := o.GetAnnotations()[v1beta1.FormerNamesAnnotation]
	switch o := o.(type) {
	case v1beta1.Record:
		st := o.GetRecordStatus()
		if moved := st.PublishedName != "" && (len(own) == 0 || absoluteName(st.PublishedName) != own[0].Name); moved || former != "" {
			past := v1beta1.KindOf(o).New()
			past.SetAnnotations(map[string]string{v1beta1.FormerNamesAnnotation: former})
			if typed, ok := o.(*v1beta1.DNSRecord); ok {
				past.(*v1beta1.DNSRecord).Spec.Type = typed.Spec.Type
			}
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

// pendingKeys are the RRsets that the controller still has to bring to what an object declares, except those on which it has given up.
func (d *DesiredState) pendingKeys(m membership.Member) []rrset.Key {
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

func (d *DesiredState) pendingOfRecord(r v1beta1.Record, own, left []rrset.Key) []rrset.Key {
	st := r.GetRecordStatus()
	behind := st.ObservedGeneration < r.GetGeneration()
	switch {
	case stalledCondition(r) != nil:
		return nil
	case len(own) == 0 && !behind: // It was published before it stopped being acceptable.
		return nil
	case behind || st.RecordHash != source.Hash(d.declarationsOf(r)[0]):
		return append(own, left...)
	}
	return left
}

func (d *DesiredState) pendingOfEndpoint(e *v1alpha1.DNSEndpoint, own, left []rrset.Key) []rrset.Key {
	if stalledCondition(e) != nil {
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

// terminal are reasons of Programmed that do not pass by themselves: a server refused the data or ignored it, or it cannot
// coexist with foreign data, or a provider cannot hold it.
var terminal = map[string]bool{
	status.ReconcileFailed: true, status.Conflict: true, status.Invalid: true, status.ProgressDeadlineExceeded: true, status.Unsupported: true,
}

// unsupportedBy is the controller's verdict that a provider of the zone cannot hold the object's current generation.
func unsupportedBy(o source.Object) (v status.Verdict, found bool) {
	c := meta.FindStatusCondition(conditionsOf(o), status.Accepted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != status.Unsupported || c.ObservedGeneration != o.GetGeneration() {
		return v, false
	}
	return status.False(c.Reason, c.Message), true
}

// stalledCondition is the controller's condition if it has given up on the object's current generation, else nil.
func stalledCondition(o source.Object) *metav1.Condition {
	c := meta.FindStatusCondition(conditionsOf(o), status.Programmed)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != o.GetGeneration() || !terminal[c.Reason] {
		return nil
	}
	return c
}

// zoneFailure is why nothing of the zone can be programmed until a person acts, as a condition that readers of a namespace may see; nil
// if that is not so. An instance that is without the zone for too long is in its own row, and so is what a guard holds back.
func (d *DesiredState) zoneFailure(namespace string) *metav1.Condition {
	s := d.zone.Status
	if s.FailureReason == "" || s.FailureReason == status.ProgressDeadlineExceeded || s.FailureReason == status.ReasonHeld ||
		s.ObservedGeneration != d.zone.Generation || v1beta1.IsGoing(d.zone) {
		return nil
	}
	message := s.FailureMessage
	if namespace != d.zone.Namespace {
		message = hiddenProblem
	}
	return &metav1.Condition{Type: status.Programmed, Status: metav1.ConditionFalse, Reason: s.FailureReason, Message: message}
}

// conditionsOf are those that the controller wrote into an object.
func conditionsOf(o source.Object) []metav1.Condition {
	switch o := o.(type) {
	case v1beta1.Record:
		return o.GetRecordStatus().Conditions
	case *v1alpha1.DNSEndpoint:
		return o.Status.Conditions
	}
	return nil
}
