package v1beta1

import (
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *DNSZone) UnmarshalJSON(data []byte) error {
	type plain DNSZone
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *Bind9Instance) UnmarshalJSON(data []byte) error {
	type plain Bind9Instance
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *Bind9Cluster) UnmarshalJSON(data []byte) error {
	type plain Bind9Cluster
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *Bind9GlobalCluster) UnmarshalJSON(data []byte) error {
	type plain Bind9GlobalCluster
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *ClusterBind9Provider) UnmarshalJSON(data []byte) error {
	type plain ClusterBind9Provider
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *ARecord) UnmarshalJSON(data []byte) error {
	type plain ARecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *AAAARecord) UnmarshalJSON(data []byte) error {
	type plain AAAARecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *CNAMERecord) UnmarshalJSON(data []byte) error {
	type plain CNAMERecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *NSRecord) UnmarshalJSON(data []byte) error {
	type plain NSRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *TXTRecord) UnmarshalJSON(data []byte) error {
	type plain TXTRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *MXRecord) UnmarshalJSON(data []byte) error {
	type plain MXRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *SRVRecord) UnmarshalJSON(data []byte) error {
	type plain SRVRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *CAARecord) UnmarshalJSON(data []byte) error {
	type plain CAARecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}
