package externaldns

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// refusal is a record that cannot be served, and why. The source object is the zero value if the record names none.
type refusal struct {
	resource resource
	note     string
}

// adjustEndpoints returns desired endpoints in the form in which servedRecords returns them once they are served, so that external-dns
// finds no difference: names in lower case and without a final dot, targets in canonical form, no settings of other providers. An
// endpoint's setIdentifier is its source object, so that external-dns plans for each source object by itself. By its own rules it would give a
// name to one of several objects that claim it, whether or not that one may have it. Adjusting again changes nothing.
//
// Endpoints of DNSEndpoints are left out: these are declarations already.
func adjustEndpoints(endpoints []*v1alpha1.Endpoint) (adjusted []*v1alpha1.Endpoint, refused []refusal) {
	adjusted = make([]*v1alpha1.Endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		if e == nil {
			continue
		}
		r, err := resourceOf(e)
		if err == nil && r.kind == endpointSource {
			continue
		}
		var a *v1alpha1.Endpoint
		if err == nil {
			a, err = adjustEndpoint(e, r)
		}
		if err != nil {
			refused = append(refused, refusal{r, fmt.Sprintf("%.255s %.20s is not published: %v", e.DNSName, e.RecordType, err)})
			continue
		}
		adjusted = append(adjusted, a)
	}
	return adjusted, refused
}

// adjustEndpoint returns one endpoint as adjustEndpoints does, or why it cannot be served.
func adjustEndpoint(e *v1alpha1.Endpoint, r resource) (*v1alpha1.Endpoint, error) {
	own := *e
	if own.SetIdentifier == r.String() {
		own.SetIdentifier = ""
	}
	if len(e.DNSName) > maxNameLength {
		return nil, errors.New("the name is too long (RFC 1035 section 2.3.4)")
	}
	key, values, err := declaration.EndpointData(&own)
	if err != nil {
		return nil, err
	}
	targets := slices.Clone(values)
	for i, target := range targets {
		if key.Type != dns.TypeTXT && !strings.HasSuffix(target, " .") { // "0 ." of an MX says that there is no host (RFC 7505)
			targets[i] = strings.TrimSuffix(target, ".")
		}
	}
	return &v1alpha1.Endpoint{
		DNSName: strings.TrimSuffix(key.Name, "."), RecordType: rrset.TypeName(key.Type), Targets: targets, RecordTTL: e.RecordTTL,
		SetIdentifier: r.String(), Labels: map[string]string{resourceLabel: r.String()},
	}, nil
}

// maxNameLength is more than any name that can be read has, in whatever escapes it is written.
const maxNameLength = 4 * 255
