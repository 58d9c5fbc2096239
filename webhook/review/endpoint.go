package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// maxWarnings is how many endpoints of one object are warned about: kubectl shows them all, one line each.
const maxWarnings = 5

// endpointReviewer judges DNSEndpoints, each endpoint by itself. Other programs read this kind as well, so what is nothing
// but unknown here is stored with a warning: a type that we do not publish, and all that has a name in no zone of ours.
type endpointReviewer struct {
	objects Objects
}

func (r endpointReviewer) review(ctx context.Context, obj, _ *v1alpha1.DNSEndpoint) (Result, error) {
	zonesNow := sync.OnceValue(func() *membership.Cache { return membership.NewCache(r.objects.liveZones(ctx, "")...) })
	zoneOf := func(dnsName string) *v1beta1.DNSZone {
		if zone := r.objects.zoneCache().ZoneOfEndpoint(obj, dnsName); zone != nil {
			return zone
		}
		return zonesNow().ZoneOfEndpoint(obj, dnsName)
	}
	var v Result
	first := map[string]firstEndpoint{}
	for i, endpoint := range obj.Spec.Endpoints {
		if endpoint == nil {
			continue
		}
		path := field.NewPath("spec", "endpoints").Index(i)
		zone := zoneOf(endpoint.DNSName)
		problems, warning := reviewEndpoint(path, endpoint, obj.Namespace, zone)
		v.Problems = append(v.Problems, problems...)
		if warning == "" && len(problems) == 0 {
			warning = r.warnUnsupported(ctx, path, endpoint, zone, obj.Namespace)
			key, rdata, _ := declaration.EndpointData(endpoint)
			name, targets := path.Child("dnsName").String(), path.Child("targets").String()
			v.Traps = slices.Concat(v.Traps, trap.OfOwner(name, key.Type, key.Name, rdata), trap.Twice(name, key.Name, declaration.DNSName(zone)+"."),
				trap.Find(targets, key.Type, rdata), findBareTarget(targets, key, rdata, zone), findTwice(targets, key.Type, rdata, zone))
			warning = cmp.Or(warning, warnExclusive(first, path, key))
		}
		if warning != "" {
			v.Warnings = append(v.Warnings, warning)
		}
	}
	if n := len(v.Warnings); n > maxWarnings {
		v.Warnings = append(v.Warnings[:maxWarnings], fmt.Sprintf("spec.endpoints: %d more endpoints are not published", n-maxWarnings))
	}
	return v, nil
}

// findBareTarget warns of a target of one label, which was probably meant to be in the zone: all targets of a DNSEndpoint are complete.
func findBareTarget(field string, key rrset.Key, rdata []string, zone *v1beta1.DNSZone) []trap.Found {
	for _, value := range rdata {
		host, named := rrset.HostOf(key.Type, value)
		label := strings.TrimSuffix(host, ".")
		if !named || label == "" || label == "localhost" || strings.Contains(label, ".") {
			continue
		}
		return []trap.Found{trap.New(trap.RelativeTarget, field, fmt.Sprintf("%s: targets of a DNSEndpoint are complete, and %q is a name of one label; write %s.%s for one in the zone",
			field, label, label, declaration.DNSName(zone)))}
	}
	return nil
}

// firstEndpoint is the first endpoint of an object that has a name.
type firstEndpoint struct {
	path *field.Path
	key  rrset.Key
}

// warnExclusive says that an endpoint and an earlier one of the same object exclude each other; "" if they do not.
func warnExclusive(first map[string]firstEndpoint, path *field.Path, key rrset.Key) string {
	earlier, again := first[key.Name]
	switch {
	case !again:
		first[key.Name] = firstEndpoint{path, key}
		return ""
	case (earlier.key.Type == dns.TypeCNAME) == (key.Type == dns.TypeCNAME):
		return ""
	}
	return fmt.Sprintf("%s: it is not published beside %s: a name with a CNAME has no other data (RFC 1034 section 3.6.2)", path, earlier.path)
}

// reviewEndpoint returns what is wrong with an endpoint, or why it is not published although nothing is. The zone is the one that
// takes it, nil when none does.
func reviewEndpoint(path *field.Path, endpoint *v1alpha1.Endpoint, namespace string, zone *v1beta1.DNSZone) (field.ErrorList, string) {
	key, _, err := declaration.EndpointData(endpoint)
	if zone != nil {
		err = errors.Join(err, declaration.CheckEndpointApex(key, zone))
	}
	switch {
	case key.Type == 0 && endpoint.RecordType == "":
		return nil, fmt.Sprintf("%s: it is empty, and Lockstep does not guess types: it is stored for other programs; YAML takes an unquoted NULL for no value: put it in quotes",
			path.Child("recordType"))
	case key.Type == 0 && rrset.DeclarableType(endpoint.RecordType) != 0:
		return nil, fmt.Sprintf("%s: %q is not published here, and stored for other programs: types are in upper case; write %q",
			path.Child("recordType"), endpoint.RecordType, strings.ToUpper(endpoint.RecordType))
	case key.Type == 0:
		return nil, fmt.Sprintf("%s: Lockstep does not publish type %q: it is stored for other programs", path.Child("recordType"), endpoint.RecordType)
	case zone == nil && err != nil:
		return nil, fmt.Sprintf("%s: no DNSZone takes %q: it is stored for other programs, and could not be published here: %s", path, endpoint.DNSName, errorTexts(err)[0])
	case err != nil:
		return endpointProblems(path, err), ""
	case zone == nil:
		return nil, fmt.Sprintf("%s: no DNSZone takes %q: it is stored, and published once a DNSZone of namespace %s has the name, "+
			"or one elsewhere admits the namespace and this DNSEndpoint lists that zone's in annotation %s",
			path.Child("dnsName"), endpoint.DNSName, namespace, v1beta1.AllowZoneNamespacesAnnotation)
	}
	return nil, ""
}

// warnUnsupported warns of an endpoint that servers of its zone cannot hold, whatever else there is. A provider is of the zone's
// namespace: elsewhere nobody is to know of it.
func (r endpointReviewer) warnUnsupported(ctx context.Context, path *field.Path, endpoint *v1alpha1.Endpoint, zone *v1beta1.DNSZone, namespace string) string {
	key, rdata, err := declaration.EndpointData(endpoint)
	if zone == nil || err != nil {
		return ""
	}
	if len(rdata) > v1beta1.DefaultMaxRecordsPerType {
		if excess := recordLimit(ctx, r.objects, zone).Excess(key, len(rdata), 0, namespace); excess != "" {
			return path.String() + ": " + excess
		}
	}
	if len(zone.Spec.ProviderRefs) == 0 || zone.Namespace != namespace {
		return ""
	}
	set := rrset.New(key, uint32(max(endpoint.RecordTTL, 0)), rdata...) //nolint:gosec // validated
	set.TTL = max(set.TTL, 1)                                           // Without one it is the zone's default.
	for _, warning := range unsupportedIn(ctx, r.objects, zone, plan.Map{key: set}, key) {
		return path.String() + ": " + warning
	}
	return ""
}

// endpointProblems turns an error of declaration.EndpointData into problems: its texts are "field: what is wrong", with the
// field as seen from the endpoint.
func endpointProblems(path *field.Path, err error) field.ErrorList {
	var problems field.ErrorList
	for _, text := range errorTexts(err) {
		at := path.String()
		if named, rest, found := strings.Cut(text, ": "); found {
			at, text = at+"."+named, rest
		}
		problems = append(problems, &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{}, Detail: text})
	}
	return problems
}
