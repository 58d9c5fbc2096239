package dnssec

import (
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// EntryPoints are the keys of a zone that DS records may name, by the data of each DS record that names one, in canonical form. Each key has
// one name, whatever the digest: the data of its DS record with SHA-256.
type EntryPoints map[string]string

// EntryPointsOf returns the entry points that keys are. A resolver that does not support a digest type does not take a DS record with it.
func EntryPointsOf(keys []*dns.DNSKEY) EntryPoints {
	points := EntryPoints{}
	for _, key := range keys {
		name := dsData(key, dns.SHA256)
		for _, digest := range []uint8{dns.SHA1, dns.SHA256, dns.SHA384} {
			if data := dsData(key, digest); data != "" {
				points[data] = name
			}
		}
	}
	return points
}

func dsData(key *dns.DNSKEY, digest uint8) string {
	ds := key.ToDS(digest)
	if ds == nil {
		return ""
	}
	_, _, data := rrset.FromRR(ds)
	return data
}

// Name is the name of the key that a DS record names. The data of a record that names none of the keys is its own name.
func (p EntryPoints) Name(ds string) string {
	if name, known := p[ds]; known {
		return name
	}
	return ds
}
