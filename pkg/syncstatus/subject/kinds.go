// Package subject knows what a SyncStatus can be about: the kinds of objects, the name of each one's SyncStatus, and what that has of the object
// before anybody has looked at a server. Whoever shows or finds SyncStatuses needs it; how a state follows is the concern of syncstatus.
package subject

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Kind is one of the kinds that a SyncStatus can be about.
type Kind struct {
	// Kind is the Kubernetes kind, Resource its plural and Singular the kind in lower case.
	Kind, Resource, Singular string
}

// GroupVersion is the API version of the objects themselves.
func (k Kind) GroupVersion() schema.GroupVersion {
	if k == EndpointKind {
		return v1alpha1.GroupVersion
	}
	return v1beta1.GroupVersion
}

// Kinds that are not records.
var (
	ZoneKind     = Kind{"DNSZone", "dnszones", "dnszone"}
	EndpointKind = Kind{source.EndpointKind, "dnsendpoints", "dnsendpoint"}
	InstanceKind = Kind{"Bind9Instance", "bind9instances", "bind9instance"}
	ClusterKind  = Kind{"Bind9Cluster", "bind9clusters", "bind9cluster"}
	// The next two are cluster-scoped. Their SyncStatus is in the namespace of their instances.
	GlobalClusterKind = Kind{"Bind9GlobalCluster", "bind9globalclusters", "bind9globalcluster"}
	ProviderKind      = Kind{"ClusterBind9Provider", "clusterbind9providers", "clusterbind9provider"}
)

// FleetKinds are the kinds whose SyncStatus describes servers instead of data.
var FleetKinds = []Kind{InstanceKind, ClusterKind, GlobalClusterKind, ProviderKind}

// Kinds are all that have a SyncStatus, zones first.
func Kinds() []Kind {
	kinds := append([]Kind{ZoneKind, EndpointKind}, FleetKinds...)
	for _, k := range v1beta1.RecordKinds {
		kinds = append(kinds, Kind{k.Kind, k.Resource, k.Singular})
	}
	return kinds
}

// Name is the name of the SyncStatus of an object: the kind in lower case, a dot, the object's name.
func Name(kind, object string) string { return strings.ToLower(kind) + "." + object }

// ParseName splits a SyncStatus name. An object's name may contain dots, a kind never does.
func ParseName(name string) (kind Kind, object string, ok bool) {
	prefix, object, found := strings.Cut(name, ".")
	if !found || object == "" {
		return Kind{}, "", false
	}
	for _, k := range Kinds() {
		if k.Singular == prefix {
			return k, object, true
		}
	}
	return Kind{}, "", false
}

var ownVersion, recordVersion, endpointVersion = syncv1.SchemeGroupVersion.String(), v1beta1.GroupVersion.String(), v1alpha1.GroupVersion.String()

// Describe returns a SyncStatus of an object, without its state. To tools that look at all kinds, it is a child of the object: it has an
// owner, a UID of its own, and nothing by which they would take it for something that a user has declared.
func Describe(kind, namespace, name string, uid types.UID, generation int64) *syncv1.SyncStatus {
	version := recordVersion
	if kind == EndpointKind.Kind {
		version = endpointVersion
	}
	return &syncv1.SyncStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: ownVersion, Kind: "SyncStatus"},
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(kind, name), Namespace: namespace, UID: ownUID(uid), Generation: generation,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: uid}},
		},
		ObjectRef: syncv1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name, UID: uid, Generation: generation},
	}
}

// New returns a SyncStatus of an object, with its labels and age, without its state.
func New(o metav1.Object, kind string) *syncv1.SyncStatus {
	s := Describe(kind, o.GetNamespace(), o.GetName(), o.GetUID(), o.GetGeneration())
	s.Labels, s.CreationTimestamp = LabelsOf(o), o.GetCreationTimestamp()
	return s
}

// trackingLabels are those by which tools find what they have applied, and prefixes of such labels.
var trackingLabels, trackingPrefixes = map[string]bool{
	"app.kubernetes.io/instance": true, "app.kubernetes.io/managed-by": true, "helm.sh/chart": true, "applyset.kubernetes.io/part-of": true,
	"cli-utils.sigs.k8s.io/inventory-id": true,
}, []string{
	"argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "kapp.k14s.io/", "objectset.rio.cattle.io/", "fleet.cattle.io/",
}

func isTracking(label string) bool {
	return trackingLabels[label] || slices.ContainsFunc(trackingPrefixes, func(prefix string) bool { return strings.HasPrefix(label, prefix) })
}

// LabelsOf returns the labels of an object that its SyncStatus has: all but those by which a tool would take it for an object that it has
// applied, and delete it. The map is the object's own if it has none of these.
func LabelsOf(o metav1.Object) map[string]string {
	labels := o.GetLabels()
	for label := range labels {
		if isTracking(label) {
			rest := maps.Clone(labels)
			maps.DeleteFunc(rest, func(label, _ string) bool { return isTracking(label) })
			return rest
		}
	}
	return labels
}

// ownUID returns the UID of the SyncStatus of the object with a UID: always the same, of version 8 (RFC 9562, section 5.8).
func ownUID(of types.UID) types.UID {
	if of == "" {
		return ""
	}
	hash := sha256.Sum256([]byte("SyncStatus of " + of))
	hash[6], hash[8] = hash[6]&0x0f|0x80, hash[8]&0x3f|0x80
	var text [36]byte
	for part, at := range [5][3]int{{0, 4, 0}, {4, 6, 9}, {6, 8, 14}, {8, 10, 19}, {10, 16, 24}} {
		hex.Encode(text[at[2]:], hash[at[0]:at[1]])
		if part > 0 {
			text[at[2]-1] = '-'
		}
	}
	return types.UID(text[:])
}
