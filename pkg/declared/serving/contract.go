package serving

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

const (
	// Port is the one that named serves DNS on in a pod, UDP and TCP.
	Port = 5353
	// ServicePort is the one of an instance's Service, UDP and TCP.
	ServicePort = 53
	// LabelInstance names the instance of a pod.
	LabelInstance = "app.kubernetes.io/instance"
)

// KeyOwner returns the name of the object whose keys an instance uses: its cluster's, else its own.
func KeyOwner(instance *v1beta1.Bind9Instance) string {
	return cmp.Or(instance.Spec.ClusterRef, instance.Name)
}

// guestSuffix ends the names of guests' keys, and of no others.
const guestSuffix = ".secondary.lockstep."

// IsGuestName reports whether only the key of a DNSProvider may have a name.
func IsGuestName(name string) bool { return strings.HasSuffix(name, guestSuffix) }

// GuestKeyName returns the name that the key of a DNSProvider with secondaries must have. Nobody chooses it: of the servers that a
// key ring is for, no two providers have one name, and none has that of a key that means more there. It is an error if it
// would be no domain name (RFC 1035 section 2.3.4).
func GuestKeyName(namespace, provider string) (string, error) {
	name := strings.ToLower(provider + "." + namespace + guestSuffix)
	if _, ok := dns.IsDomainName(name); !ok {
		return "", fmt.Errorf("DNSProvider %s has too long a name for the key of its secondaries: no part of %s may have more than 63 characters, and all of it no more than 253", provider, name)
	}
	return name, nil
}
