package source

import (
	"cmp"
	"hash/maphash"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// EndpointKind is the kind of the objects of external-dns.
const EndpointKind = "DNSEndpoint"

// ZoneKind is the kind of zones, which declare data of their own.
const ZoneKind = "DNSZone"

// Object declares DNS data: a record of the ten kinds (v1beta1.Record) or a *v1alpha1.DNSEndpoint.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects converts objects of one type to what Build takes.
func Objects[T Object](objects []T) []Object {
	all := make([]Object, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	return all
}

// ObjectKey names an Object.
type ObjectKey struct{ Kind, Namespace, Name string }

// String is how messages name an object: "ARecord dns-system/www", and "ARecord www" where it has no namespace.
func (k ObjectKey) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// KeyOf names an object. Its kind is found by its Go type, because clients clear TypeMeta; it is empty for what declares
// no DNS data.
func KeyOf(o Object) ObjectKey { return ObjectKey{kindOf(o), o.GetNamespace(), o.GetName()} }

func kindOf(o Object) string {
	switch o := o.(type) {
	case *v1beta1.ARecord: // Most objects of large zones; the rest is looked up.
		return "ARecord"
	case v1beta1.Record:
		return v1beta1.KindOf(o).Kind
	case *v1alpha1.DNSEndpoint:
		return EndpointKind
	}
	return ""
}

// ID names one declaration of an object: Index is the endpoint's place in a DNSEndpoint's spec.endpoints, 0 for a record.
type ID struct {
	ObjectKey
	Index int
}

var hashSeed = maphash.MakeSeed()

// hashID keeps all declarations of an object together.
func hashID(id ID) uint64 { return maphash.Comparable(hashSeed, id.ObjectKey) }

// hashKey keeps all RRsets of an owner name together.
func hashKey(k rrset.Key) uint64 { return snapshot.String(k.Name) }

// refOf identifies an object that declares data, or a zone.
func refOf(o Object) Ref {
	r := Ref{APIVersion: apiVersion, Kind: kindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration()}
	switch o.(type) {
	case *v1alpha1.DNSEndpoint:
		r.APIVersion = endpointAPIVersion
	case *v1beta1.DNSZone:
		r.Kind = ZoneKind
	}
	return r
}

var (
	apiVersion         = v1beta1.GroupVersion.String()
	endpointAPIVersion = v1alpha1.GroupVersion.String()
)

// creationTime is when an object was made, in nanoseconds. One without a timestamp is about to be created: the youngest.
func creationTime(o Object) int64 {
	if t := o.GetCreationTimestamp(); !t.IsZero() {
		return t.UnixNano()
	}
	return math.MaxInt64
}

// compareObjects orders objects of the same age by namespace, name, kind and UID.
func compareObjects(a, b Object) int {
	if c := cmp.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
		return c
	}
	if c := cmp.Compare(a.GetName(), b.GetName()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(a.GetUID(), b.GetUID()))
}
