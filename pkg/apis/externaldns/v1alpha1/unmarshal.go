package v1alpha1

import (
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *DNSEndpoint) UnmarshalJSON(data []byte) error {
	type plain DNSEndpoint
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}
