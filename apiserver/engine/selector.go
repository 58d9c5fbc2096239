package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// zoneCandidates finds the zones that may select a record without trying every zone of the namespace. Whether one does
// is source's to say.
type zoneCandidates struct {
	byLabel map[[2]string][]*v1beta1.DNSZone
	// always holds zones with a selector that names no label value.
	always []*v1beta1.DNSZone
}

func newCandidates(zones []*v1beta1.DNSZone) *zoneCandidates {
	c := &zoneCandidates{byLabel: map[[2]string][]*v1beta1.DNSZone{}}
	for _, z := range zones {
		for _, from := range z.Spec.RecordsFrom {
			pairs, ok := required(from.Selector)
			if !ok {
				c.always = append(c.always, z)
			}
			for _, p := range pairs {
				c.byLabel[p] = append(c.byLabel[p], z)
			}
		}
	}
	return c
}

// required gives label pairs of which an object must have one to be selected; none when the selector names none.
func required(s metav1.LabelSelector) ([][2]string, bool) {
	for k, v := range s.MatchLabels {
		return [][2]string{{k, v}}, true
	}
	for _, e := range s.MatchExpressions {
		if e.Operator != metav1.LabelSelectorOpIn || len(e.Values) == 0 {
			continue
		}
		var pairs [][2]string
		for _, v := range e.Values {
			pairs = append(pairs, [2]string{e.Key, v})
		}
		return pairs, true
	}
	return nil, false
}

func (c *zoneCandidates) of(r v1beta1.Record) []*v1beta1.DNSZone {
	zones := slices.Clone(c.always)
	for k, v := range r.GetLabels() {
		zones = append(zones, c.byLabel[[2]string{k, v}]...)
	}
	return zones
}
