package podcheck

import (
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// keyReasons are the failures of a zone that are about the keys of its servers: what other servers lack, or the zone itself,
// is not the instance's failure.
var keyReasons = map[string]bool{"BadKey": true, "BadSignature": true}

// keyFailure says that servers of an instance do not accept our keys, as the controller found with one of its zones; the zero value if it
// found no such thing.
func keyFailure(instance *v1beta1.Bind9Instance, zones []*v1beta1.DNSZone) status.Verdict {
	for _, zone := range zones {
		if !keyReasons[zone.Status.FailureReason] {
			continue
		}
		for _, i := range zone.Status.Bind9Instances {
			if i.Namespace != instance.Namespace || i.Name != instance.Name || i.Status != v1beta1.ZoneFailed {
				continue
			}
			return status.KeysRefused(zone, instance.Namespace)
		}
	}
	return status.Verdict{}
}
