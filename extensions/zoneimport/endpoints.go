package zoneimport

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Limits of a DNSEndpoint with many endpoints. kubectl apply keeps a copy of the object in an annotation, and all annotations
// may have 256 KiB.
const (
	maxEndpoints     = 500
	maxEndpointBytes = 200 << 10
)

// newEndpoint returns the endpoint of a DNSEndpoint that declares an RRset.
func newEndpoint(set rrset.RRset, zoneTTL uint32) (*v1alpha1.Endpoint, error) {
	e := &v1alpha1.Endpoint{DNSName: strings.TrimSuffix(set.SpelledName(), "."), RecordType: rrset.TypeName(set.Type), Targets: spelledValues(set)}
	if set.TTL != zoneTTL {
		e.RecordTTL = int64(set.TTL)
	}
	key, values, err := declaration.EndpointData(e)
	if err == nil && (key != set.Key || !slices.Equal(values, set.Rdata)) {
		err = fmt.Errorf("a DNSEndpoint would publish it as %s", rrset.RRset{Key: key, TTL: set.TTL, Rdata: values})
	}
	return e, err
}

// spelledValues are the data of an RRset as it is spelled.
func spelledValues(set rrset.RRset) []string {
	if set.Spelling == nil {
		return set.Rdata
	}
	values := make([]string, len(set.Rdata))
	for i, rdata := range set.Rdata {
		values[i] = set.SpelledRdata(rdata)
	}
	return values
}

// endpointGroups cuts endpoints into groups for one object each.
func endpointGroups(all []*v1alpha1.Endpoint) [][]*v1alpha1.Endpoint {
	var groups [][]*v1alpha1.Endpoint
	begin, size := 0, 0
	for i, e := range all {
		bytes := endpointSize(e)
		if i > begin && (i-begin == maxEndpoints || size+bytes > maxEndpointBytes) {
			groups = append(groups, all[begin:i])
			begin, size = i, 0
		}
		size += bytes
	}
	if begin < len(all) {
		groups = append(groups, all[begin:])
	}
	return groups
}

func endpointSize(e *v1alpha1.Endpoint) int {
	text, err := json.Marshal(e)
	if err != nil {
		return maxEndpointBytes
	}
	return len(text)
}
