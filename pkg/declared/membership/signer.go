package membership

import (
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// SignerOf is the instance that signs a zone: of its primaries the oldest, which stays the same when others join; nil if there is none.
func SignerOf(instances []*v1beta1.Bind9Instance) *v1beta1.Bind9Instance {
	var signer *v1beta1.Bind9Instance
	for _, i := range instances {
		if i.Spec.Role.Normalize() == v1beta1.RolePrimary && (signer == nil || i.CreationTimestamp.Before(&signer.CreationTimestamp)) {
			signer = i
		}
	}
	return signer
}

// SigningMoves reports whether a change of a zone leads it away from the keys that it is signed with: to servers of another cluster, or to
// none that would sign it. An instance without a cluster keeps its keys for itself. It is false if nobody signs the zone before.
func (f *Fleet) SigningMoves(before, after *v1beta1.DNSZone) bool {
	signer := SignerOf(f.InstancesOf(before))
	if signer == nil {
		return false
	}
	next := SignerOf(f.InstancesOf(after))
	return next == nil || next.Namespace != signer.Namespace || next.Spec.ClusterRef != signer.Spec.ClusterRef || signer.Spec.ClusterRef == "" && next.Name != signer.Name
}
