package externaldns

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// servedRecords returns the records of stored DNSEndpoints as external-dns is to see them. What every primary was seen to answer has
// its targets. What is declared and not served has none: external-dns then asks for it again, which writes nothing, and can still
// delete it.
func servedRecords(stored []v1alpha1.DNSEndpoint, owner string) []*v1alpha1.Endpoint {
	records := []*v1alpha1.Endpoint{}
	for i := range stored {
		o := &stored[i]
		r, ok := sourceOf(o, owner)
		if !ok {
			continue
		}
		served := servedRRsets(o)
		for _, e := range o.Spec.Endpoints {
			if e == nil {
				continue
			}
			record := &v1alpha1.Endpoint{
				DNSName: strings.TrimSuffix(e.DNSName, "."), RecordType: e.RecordType, RecordTTL: e.RecordTTL, SetIdentifier: r.String(),
				Labels: map[string]string{resourceLabel: r.String()},
			}
			if served[rrsetText(e)] {
				record.Targets = slices.Clone(e.Targets)
			}
			records = append(records, record)
		}
	}
	return records
}

// servedRRsets returns the RRsets, "www.example.com./A", that primaries were seen to serve for a DNSEndpoint as it is now.
func servedRRsets(o *v1alpha1.DNSEndpoint) map[string]bool {
	if o.Status.ObservedGeneration != o.Generation {
		return nil
	}
	served := map[string]bool{}
	for _, zone := range o.Status.Zones {
		for _, text := range zone.RRsets {
			served[text] = true
		}
	}
	return served
}

func rrsetText(e *v1alpha1.Endpoint) string {
	return strings.ToLower(strings.TrimSuffix(e.DNSName, ".")) + "./" + e.RecordType
}

// unservedNotes returns the DNSEndpoints of which not everything is accepted, and why.
func unservedNotes(stored []v1alpha1.DNSEndpoint, owner string) []refusal {
	var notes []refusal
	for i := range stored {
		o := &stored[i]
		r, ok := sourceOf(o, owner)
		c := meta.FindStatusCondition(o.Status.Conditions, status.Accepted)
		if ok && c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == o.Generation {
			notes = append(notes, refusal{r, c.Reason + ": DNSEndpoint " + o.Name + ": " + c.Message})
		}
	}
	return notes
}
