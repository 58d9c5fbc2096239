package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// judgeEndpoint checks every endpoint of a DNSEndpoint by itself: its name, its TTL, and each target as data of its type.
// Types that we do not publish pass, because other programs read this kind as well.
func judgeEndpoint(_ context.Context, obj, _ *v1alpha1.DNSEndpoint) (verdict, error) {
	var problems field.ErrorList
	for i, endpoint := range obj.Spec.Endpoints {
		if endpoint == nil {
			continue
		}
		path := field.NewPath("spec", "endpoints").Index(i)
		problems = append(problems, judgeOne(path, endpoint)...)
	}
	return verdict{problems: problems}, nil
}

func judgeOne(path *field.Path, endpoint *v1alpha1.Endpoint) field.ErrorList {
	kind, ours := typeNamed(endpoint.RecordType)
	if !ours {
		return nil
	}
	var problems field.ErrorList
	name, err := rrset.CanonicalName(endpoint.DNSName)
	if err != nil {
		problems = append(problems, field.Invalid(path.Child("dnsName"), endpoint.DNSName, err.Error()))
	}
	if ttl := endpoint.RecordTTL; ttl < 0 || ttl > v1beta1.MaxTTL {
		problems = append(problems, field.Invalid(path.Child("recordTTL"), ttl, "must be between 0 and 2147483647 seconds (RFC 2181 section 8)"))
	}
	if err != nil || kind.Type == "TXT" { // text is taken as it stands, with quotes or without
		return problems
	}
	for i, target := range endpoint.Targets {
		if _, err := rrset.Parse(rrset.Key{Name: name, Type: kind.RRType}, target); err != nil {
			problems = append(problems, field.Invalid(path.Child("targets").Index(i), target, err.Error()))
		}
	}
	return problems
}

func typeNamed(mnemonic string) (v1beta1.RecordKind, bool) {
	for _, kind := range v1beta1.RecordKinds {
		if kind.Type == mnemonic {
			return kind, true
		}
	}
	return v1beta1.RecordKind{}, false
}
