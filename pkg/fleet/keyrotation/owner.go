package keyrotation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// Owner is the object that keys belong to: a cluster, or an instance without one.
type Owner struct {
	metav1.Object
	Kind schema.GroupVersionKind
	// Namespace of the Secrets: the owner's own, or that of a cluster-scoped cluster's instances.
	Namespace string
	settings  named.KeySettings
	// regarding is what Events about the keys are about.
	regarding client.Object
	// podLabels select the servers that have the keys.
	podLabels map[string]string
}

// OwnerOf is the owner of an instance's keys: its cluster or, when that has no Object, the instance itself.
func OwnerOf(i *v1beta1.Bind9Instance, c inventory.Cluster) Owner {
	if c.Object != nil {
		return ClusterOwner(c)
	}
	return Owner{i, inventory.InstanceKind, i.Namespace, named.StandaloneKeys(&i.Spec), i, named.SelectorLabels(i.Name)}
}

// ClusterOwner is a cluster as the owner of its instances' keys.
func ClusterOwner(c inventory.Cluster) Owner {
	return Owner{c, c.Kind, c.Namespace, named.ClusterKeys(c.Spec), c.Object, map[string]string{v1beta1.ClusterLabel: c.GetName()}}
}

// Labels are on what the owner's keys are stored and granted with.
func (o Owner) Labels() map[string]string {
	return map[string]string{named.LabelName: named.AppName, named.LabelPartOf: o.GetName(), named.LabelManagedBy: named.Manager}
}

// Reference makes the owner that of an object.
func (o Owner) Reference() *metav1ac.OwnerReferenceApplyConfiguration {
	return named.OwnerReference(o.Kind.GroupVersion().String(), o.Kind.Kind, o)
}

func (o Owner) secretKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: name}
}

// ObjectMeta is for a Secret that the owner controls.
func (o Owner) ObjectMeta(name client.ObjectKey) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, Labels: o.Labels(),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Name: o.GetName(), UID: o.GetUID(),
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

// checkPredecessor is an error for apply.Predecessors if a Secret is about to go with a deleted object that had the owner's name.
func (o Owner) checkPredecessor(secret *corev1.Secret) error {
	return apply.CheckPredecessor(secret, "Secret", o.ObjectMeta(client.ObjectKey{}).OwnerReferences[0])
}

// checkOwned refuses a ring of somebody else: otherwise a cluster and an instance of the same name would share their keys,
// and the deletion of one would take them from the other.
func (o Owner) checkOwned(ring *corev1.Secret) error {
	holder := metav1.GetControllerOf(ring)
	if holder != nil && holder.UID == o.GetUID() {
		return nil
	}
	if err := o.checkPredecessor(ring); err != nil {
		return err
	}
	name := "nobody"
	if holder != nil {
		name = holder.Kind + " " + holder.Name
	}
	return fmt.Errorf("%w for %s %s: Secret %s/%s belongs to %s; clusters and instances without one need different names in a namespace",
		named.ErrKey, o.Kind.Kind, o.GetName(), ring.Namespace, ring.Name, name)
}
