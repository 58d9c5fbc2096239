package observe

import (
	"net/netip"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Role of a server in its zones.
type Role string

// The roles.
const (
	Primary   Role = "Primary"
	Secondary Role = "Secondary"
)

// Peer is a server as those see it who name it: a pod of an instance, or a server of a DNSProvider. Anybody may name any address
// in a DNSProvider, so what is known of a server, and who waits for it, is kept by Peer and never by address alone.
type Peer struct {
	Addr netip.AddrPort
	// Namespace is the namespace of the instance or of the DNSProvider, Provider the name of the DNSProvider; empty for a pod.
	Namespace, Provider string
}

// Zone is a zone as it is declared. Its content is charged to the namespace.
type Zone struct {
	// Namespace is the namespace that declares the zone, Name its canonical name.
	Namespace, Name string
}

// Server is one expected server: a BIND pod, whether it exists or not, or a server of a DNSProvider.
type Server struct {
	Namespace, Instance string
	// Pod is the pod's name; of a provider's server the provider's name, a slash, and address and port as the provider has them.
	// It is unique in the namespace.
	Pod string
	// Provider is the name of the DNSProvider; empty for a pod.
	Provider string
	// Shared is true of a provider's server if others write to its zones as well (writers Shared): its primary counts its own serial,
	// which its secondaries follow, and the apex is not the zone object's there.
	Shared bool
	// Owner names who claims values in the zones of a provider whose servers are shared so that each writer has values of its own (ownership
	// Values); empty elsewhere.
	Owner string
	// ReadBy is how its content is read; empty for ReadByTransfer.
	ReadBy v1beta1.ReadMethod
	// Unsigned is true if the server has no keys, as CoreDNS: nothing that it answers is signed, and it has no serial and no transfer.
	Unsigned bool
	Role     Role
	// Addr is where the server answers DNS; invalid while it has no address.
	Addr netip.AddrPort
	// Service is the address of the instance's Service; invalid while it has none.
	Service netip.Addr
	// ServiceAddresses are those at which clients reach the Service; from outside of the Kubernetes cluster, if it is open to them.
	ServiceAddresses []netip.Addr
	// Node is the address of the pod's node, and NodePorts the ports there that lead to the Service, over UDP and TCP; not valid, and 0,
	// if there are none.
	Node      netip.Addr
	NodePorts [2]uint16
	// PodPhase is empty if the pod does not exist.
	PodPhase corev1.PodPhase
	PodReady bool
	// Restarts counts those of all containers.
	Restarts int32
	// Message is why the pod does not run, as Kubernetes reports it; empty if it runs or nothing is known.
	Message string
	// Foreign says what the instance's Service sends queries to besides its pods, as the fleet manager has found; empty if nothing.
	Foreign string
}

// Equal reports whether both say the same.
func (s Server) Equal(o Server) bool { return reflect.DeepEqual(s, o) }

// Peer identifies the server as its users name it: by address, namespace and provider.
func (s Server) Peer() Peer { return Peer{Addr: s.Addr, Namespace: s.Namespace, Provider: s.Provider} }
