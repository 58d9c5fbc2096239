package review

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// reviewSigner refuses a change that leads a signed zone to servers without its keys. Resolvers that have a DS record of them would reject
// every answer from that moment on. Only a zone of which it is known that no resolver has one may go.
func (r zoneReviewer) reviewSigner(ctx context.Context, zone, old *v1beta1.DNSZone) (field.ErrorList, error) {
	if old == nil || old.Status.DNSSEC == nil || !old.Status.DNSSEC.Signed {
		return nil, nil
	}
	if at, known := old.Status.DNSSEC.Delegation.ForgottenAt(); known && time.Now().After(at) {
		return nil, nil
	}
	all, err := r.objects.fleet(ctx)
	if err != nil || !all.SigningMoves(old, zone) {
		return nil, err
	}
	path, value := field.NewPath("spec"), zone.Spec.ZoneName
	if zone.Spec.ClusterRef != old.Spec.ClusterRef {
		path, value = path.Child("clusterRef"), zone.Spec.ClusterRef
	}
	return field.ErrorList{field.Invalid(path, value, "the zone is signed, and its keys stay with the servers that it has: validating resolvers would reject what others answer. "+
		"Set dnssecPolicy: insecure where it is, wait until status.dnssec is gone, move it, and sign it again")}, nil
}
