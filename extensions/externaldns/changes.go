package externaldns

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// planChanges is the body of POST /records: what external-dns has planned. What it replaces is known from what is stored, so
// updateOld is not read.
type planChanges struct {
	Create    []*v1alpha1.Endpoint `json:"create"`
	UpdateNew []*v1alpha1.Endpoint `json:"updateNew"`
	Delete    []*v1alpha1.Endpoint `json:"delete"`
}

// sourceDeclaration is what a source object is to declare: its endpoints, none to delete it. Stored is its DNSEndpoint, nil if there is none.
type sourceDeclaration struct {
	resource  resource
	endpoints []*v1alpha1.Endpoint
	stored    *v1alpha1.DNSEndpoint
}

// endpointKey is an endpoint within its object.
type endpointKey struct{ dnsName, recordType string }

func keyOf(e *v1alpha1.Endpoint) endpointKey {
	return endpointKey{strings.TrimSuffix(e.DNSName, "."), e.RecordType}
}

// mergeChanges returns the declarations that changes lead to, of the source objects of which anything is to be written, and what of the
// changes cannot be served.
func mergeChanges(stored []v1alpha1.DNSEndpoint, changes planChanges, owner string) (next []sourceDeclaration, refused []refusal) {
	objects := map[resource]*v1alpha1.DNSEndpoint{}
	for i := range stored {
		if r, ok := sourceOf(&stored[i], owner); ok {
			objects[r] = &stored[i]
		}
	}
	touched := map[resource]map[endpointKey]*v1alpha1.Endpoint{}
	declared := func(r resource) map[endpointKey]*v1alpha1.Endpoint {
		if touched[r] == nil {
			touched[r] = storedEndpoints(objects[r])
		}
		return touched[r]
	}
	for _, e := range changes.Delete {
		if e == nil {
			continue
		}
		if r, err := resourceOf(e); err == nil {
			delete(declared(r), keyOf(e))
		}
	}
	wanted, refused := adjustEndpoints(slices.Concat(changes.Create, changes.UpdateNew))
	for _, e := range wanted {
		r, _ := resourceOf(e)
		declared(r)[keyOf(e)] = storedForm(e)
	}
	for r, endpoints := range touched {
		d := sourceDeclaration{resource: r, stored: objects[r]}
		d.endpoints = slices.SortedFunc(maps.Values(endpoints), func(a, b *v1alpha1.Endpoint) int {
			return cmp.Or(cmp.Compare(a.DNSName, b.DNSName), cmp.Compare(a.RecordType, b.RecordType))
		})
		if !d.isStored() {
			next = append(next, d)
		}
	}
	slices.SortFunc(next, func(a, b sourceDeclaration) int { return cmp.Compare(a.resource.String(), b.resource.String()) })
	return next, refused
}

// storedForm returns an adjusted endpoint as it is stored: its name ends in a dot. If external-dns reads DNSEndpoints as well, it takes
// endpoints that are equal for one and forgets of which object the other was: it would delete what it finds stored.
func storedForm(e *v1alpha1.Endpoint) *v1alpha1.Endpoint {
	stored := *e
	stored.DNSName, stored.SetIdentifier = e.DNSName+".", ""
	return &stored
}

func storedEndpoints(o *v1alpha1.DNSEndpoint) map[endpointKey]*v1alpha1.Endpoint {
	endpoints := map[endpointKey]*v1alpha1.Endpoint{}
	if o == nil || o.DeletionTimestamp != nil {
		return endpoints
	}
	for _, e := range o.Spec.Endpoints {
		if e != nil {
			endpoints[keyOf(e)] = e
		}
	}
	return endpoints
}

// isStored reports whether nothing is to be written.
func (d sourceDeclaration) isStored() bool {
	if d.stored == nil || d.stored.DeletionTimestamp != nil {
		return len(d.endpoints) == 0
	}
	return len(d.endpoints) > 0 && equality.Semantic.DeepEqual(d.endpoints, d.stored.Spec.Endpoints)
}
