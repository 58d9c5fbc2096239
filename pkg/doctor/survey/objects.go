package survey

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	externaldns "github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// pageSize is how many objects are listed at a time.
const pageSize = 500

// objectKind is a kind that has a status.
type objectKind struct {
	name string
	list client.ObjectList
	// observed returns the generation and the conditions of an object's status.
	observed func(runtime.Object) (int64, []metav1.Condition)
}

// objectKinds are all kinds that have a status.
func objectKinds() []objectKind {
	kinds := []objectKind{
		{"DNSZone", &v1beta1.DNSZoneList{}, func(o runtime.Object) (int64, []metav1.Condition) {
			s := o.(*v1beta1.DNSZone).Status
			return s.ObservedGeneration, s.Conditions
		}},
		{"Bind9Instance", &v1beta1.Bind9InstanceList{}, func(o runtime.Object) (int64, []metav1.Condition) {
			s := o.(*v1beta1.Bind9Instance).Status
			return s.ObservedGeneration, s.Conditions
		}},
		{"Bind9Cluster", &v1beta1.Bind9ClusterList{}, observedOfCluster},
		{"Bind9GlobalCluster", &v1beta1.Bind9GlobalClusterList{}, observedOfCluster},
		{"ClusterBind9Provider", &v1beta1.ClusterBind9ProviderList{}, observedOfCluster},
		{"DNSProvider", &v1beta1.DNSProviderList{}, func(o runtime.Object) (int64, []metav1.Condition) {
			s := o.(*v1beta1.DNSProvider).Status
			return s.ObservedGeneration, s.Conditions
		}},
		{"DNSEndpoint", &externaldns.DNSEndpointList{}, func(o runtime.Object) (int64, []metav1.Condition) {
			s := o.(*externaldns.DNSEndpoint).Status
			return s.ObservedGeneration, s.Conditions
		}},
	}
	for _, k := range v1beta1.RecordKinds {
		kinds = append(kinds, objectKind{k.Kind, k.NewList().(client.ObjectList), func(o runtime.Object) (int64, []metav1.Condition) {
			s := o.(v1beta1.Record).GetRecordStatus()
			return s.ObservedGeneration, s.Conditions
		}})
	}
	return kinds
}

func observedOfCluster(o runtime.Object) (int64, []metav1.Condition) {
	var s v1beta1.Bind9ClusterStatus
	switch o := o.(type) {
	case *v1beta1.Bind9Cluster:
		s = o.Status
	case *v1beta1.Bind9GlobalCluster:
		s = o.Status
	case *v1beta1.ClusterBind9Provider:
		s = o.Status
	}
	return s.ObservedGeneration, s.Conditions
}

// readObjects reads all objects page by page, and keeps what is not as it should be. Cluster-scoped ones belong to no namespace.
func (s *Survey) readObjects(ctx context.Context, f *doctor.Facts) {
	for _, kind := range objectKinds() {
		if s.Namespace != "" && clusterScoped[kind.name] {
			continue
		}
		read := fact[doctor.Objects](fmt.Sprintf("list %ss", kind.name), s.Namespace)
		read.Value.Kind = kind.name
		read.Err = s.eachObject(ctx, kind.list, func(o client.Object) {
			observed, conditions := kind.observed(o)
			addObject(&read.Value, o, observed, conditions)
			s.addNamed(f, o)
		})
		f.Objects = append(f.Objects, read)
	}
}

// eachObject visits every object of a kind, of which empty is a list. What a page does not have would stay in its list from the page
// before, so each has its own.
func (s *Survey) eachObject(ctx context.Context, empty client.ObjectList, visit func(client.Object)) error {
	for next := ""; ; {
		list := empty.DeepCopyObject().(client.ObjectList)
		if err := s.client.List(ctx, list, client.InNamespace(s.Namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error { visit(o.(client.Object)); return nil }); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// addObject counts an object, and adds it where it belongs. One that is being deleted has no use for a status.
func addObject(all *doctor.Objects, o client.Object, observed int64, conditions []metav1.Condition) {
	all.Count++
	if o.GetDeletionTimestamp() != nil {
		return
	}
	if observed < o.GetGeneration() {
		all.Lagging = append(all.Lagging, doctor.LaggingObject{Key: client.ObjectKeyFromObject(o), Generation: o.GetGeneration(), Observed: observed, Changed: changeTime(o)})
	}
	if ready := meta.FindStatusCondition(conditions, status.Ready); ready != nil && ready.Status != metav1.ConditionTrue {
		all.Unready = append(all.Unready, doctor.UnreadyObject{Key: client.ObjectKeyFromObject(o), Reason: ready.Reason, Message: ready.Message})
	}
}

// changeTime is when somebody last wrote an object, its status aside.
func changeTime(o client.Object) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, m := range o.GetManagedFields() {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}

// addNamed keeps an instance or a provider, and notes the Secrets that an object names.
func (s *Survey) addNamed(f *doctor.Facts, o client.Object) {
	switch o := o.(type) {
	case *v1beta1.Bind9Instance:
		f.StoredInstances = append(f.StoredInstances, *o.DeepCopy())
		s.addInstance(f, o)
	case *v1beta1.DNSProvider:
		f.Providers = append(f.Providers, *o.DeepCopy())
		s.addProvider(o)
	case *v1beta1.Bind9Cluster:
		s.addKeys(o, "Bind9Cluster", o.Namespace, named.ClusterKeys(&o.Spec))
	case *v1beta1.Bind9GlobalCluster:
		s.addKeys(o, "Bind9GlobalCluster", membership.InstanceNamespace(o, s.System), named.ClusterKeys(&o.Spec.Bind9ClusterSpec))
	case *v1beta1.ClusterBind9Provider:
		s.addKeys(o, "ClusterBind9Provider", membership.InstanceNamespace(o, s.System), named.ClusterKeys(&o.Spec.Bind9ClusterSpec))
	}
}
