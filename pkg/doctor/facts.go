package doctor

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Fact is something that was read, or why it could not be.
type Fact[T any] struct {
	// Request is what was asked for, as in "you may not …": "list deployments in namespace lockstep-system".
	Request string
	Value   T
	Err     error
}

// Facts are what an installation looked like. Nothing in them is secret: of a Secret there are its certificates, or what is wrong with it.
type Facts struct {
	// Namespace is where Lockstep is expected, Elsewhere are the namespaces where it is if it is not there.
	Namespace string
	Elsewhere []string
	// Plugin is the version of the plugin.
	Plugin string
	// Now is the time by the clock of kube-apiserver.
	Now time.Time

	Server      Fact[Server]
	Deployments Fact[[]appsv1.Deployment]
	// Definitions are those that are installed, Known those of the plugin.
	Definitions Fact[[]apiextensionsv1.CustomResourceDefinition]
	Known       []apiextensionsv1.CustomResourceDefinition
	Leases      []Fact[coordinationv1.Lease]

	// Serving are the certificates of the API server and of the webhook, Clients those with which components call sidecars, Sidecars those of
	// instances.
	Serving, Clients, Sidecars []Fact[Certificate]
	APIService                 Fact[APIService]
	// AdmissionAPIService is there if the webhook answers kube-apiserver alone.
	AdmissionAPIService Fact[APIService]
	Mutating            Fact[admissionv1.MutatingWebhookConfiguration]
	Validating          Fact[admissionv1.ValidatingWebhookConfiguration]
	// KnownMutating and KnownValidating are those of the plugin.
	KnownMutating   admissionv1.MutatingWebhookConfiguration
	KnownValidating admissionv1.ValidatingWebhookConfiguration
	// Endpoints are those of the two Services.
	WebhookEndpoints, APIServerEndpoints Fact[[]discoveryv1.EndpointSlice]
	// Admission is how long a record took to pass admission, without being stored.
	Admission Fact[time.Duration]

	// Instances are the SyncStatuses of Bind9Instances, OutOfSync all that are not in sync.
	Instances, OutOfSync Fact[Statuses]
	// Keys are the Secrets that objects name.
	Keys []Fact[KeySecret]
	// Objects are the objects of each kind.
	Objects []Fact[Objects]
	// Servers are Bind9Instances and DNSProviders as they are stored.
	StoredInstances []v1beta1.Bind9Instance
	Providers       []v1beta1.DNSProvider
}

// Server is what kube-apiserver says of itself.
type Server struct {
	// Version is its gitVersion, for example v1.37.1.
	Version string
	// Clock is its time, to the second, and Local the time here in the middle of the request.
	Clock, Local time.Time
}

// Certificate is what a Secret of type kubernetes.io/tls has, without its key.
type Certificate struct {
	Secret types.NamespacedName
	// Name is the DNS name that a server's certificate has to be for; empty for a client's.
	Name string
	// Certificate and Bundle are PEM: tls.crt and ca.crt.
	Certificate, Bundle []byte
	// CertManager is the cert-manager Certificate that it comes from; empty if Lockstep issued it.
	CertManager string
}

// APIService is what matters of one.
type APIService struct {
	Name string
	// Exists is false if there is none.
	Exists   bool
	CABundle []byte
	// Available is its condition.
	Available metav1.Condition
}

// Statuses is the answer to a LIST of SyncStatus.
type Statuses struct {
	Items []v1alpha1.SyncStatus
	// Took is how long the answer took.
	Took time.Duration
}

// KeySecret is a Secret that objects name.
type KeySecret struct {
	Secret types.NamespacedName
	// Owner is the object that names it, as in "DNSProvider dns/knot".
	Owner string
	// Problem is what is wrong with it; empty if nothing is.
	Problem string
}

// Objects is how many objects of a kind there are, and those that are not as they should be.
type Objects struct {
	Kind string
	// Count is of all.
	Count int
	// Lagging have a status of an older generation, Unready are not Ready.
	Lagging []LaggingObject
	Unready []UnreadyObject
}

// LaggingObject is an object whose status is not about its present generation.
type LaggingObject struct {
	Key types.NamespacedName
	// Generation is the object's, Observed that of its status; 0 if it has none.
	Generation, Observed int64
	// Changed is when it was last changed.
	Changed time.Time
}

// UnreadyObject is an object that is not Ready, and why.
type UnreadyObject struct {
	Key             types.NamespacedName
	Reason, Message string
}
