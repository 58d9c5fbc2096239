package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// pageSize is how many objects are listed at a time.
const pageSize = 500

// inventory is what Bindy has left in a Kubernetes cluster.
type inventory struct {
	// operators are the Deployments of Bindy and its Scout that run.
	operators []appsv1.Deployment
	// policies are its admission policies and their bindings.
	policies []client.Object
	// systemNamespace is the namespace that Lockstep runs in; empty if it is not installed.
	systemNamespace string
	// finalized are the objects that have a finalizer of Bindy's.
	finalized []metav1.PartialObjectMetadata
	// inner are the clusters that Bindy made for ClusterBind9Providers: these own their instances here.
	inner []innerCluster
	// servers are the Deployments of Bindy's instances.
	servers []formerServer
	// leftovers are objects that served them, and that nobody needs any more.
	leftovers []client.Object
	// lost says what Lockstep does not take over.
	lost []string
}

// innerCluster is a Bind9Cluster that Bindy made for a ClusterBind9Provider, and the instances that it controls.
type innerCluster struct {
	cluster   v1beta1.Bind9Cluster
	provider  v1beta1.ClusterBind9Provider
	instances []v1beta1.Bind9Instance
}

// formerServer is the Deployment of an instance.
type formerServer struct {
	deployment appsv1.Deployment
	// waits is why queries still need it; empty if they do not.
	waits string
}

// Labels that Bindy puts on everything that it makes, and those of its own Deployments.
var (
	madeByBindy  = mustParse("app.kubernetes.io/part-of=bindy,app.kubernetes.io/name=bind9,app.kubernetes.io/managed-by!=lockstep")
	operatorApps = mustParse("app in (bindy,bindy-scout)")
	policyParts  = mustParse("app.kubernetes.io/part-of=bindy")
)

func mustParse(selector string) client.MatchingLabelsSelector {
	s, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return client.MatchingLabelsSelector{Selector: s}
}

// takeInventory reads what there is. It changes nothing.
func takeInventory(ctx context.Context, c client.Client) (*inventory, error) {
	i := &inventory{}
	for _, part := range []func(context.Context, client.Client) error{
		i.addOperators, i.addPolicies, i.addFinalized, i.addInnerClusters, i.addServers, i.addLeftovers, i.addLost,
	} {
		if err := part(ctx, c); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (i *inventory) addOperators(ctx context.Context, c client.Client) error {
	var own, all appsv1.DeploymentList
	if err := c.List(ctx, &own, client.MatchingLabels{"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "fleet"}); err != nil {
		return fmt.Errorf("looking for Lockstep: %w", err)
	}
	for _, d := range own.Items {
		i.systemNamespace = d.Namespace
	}
	if err := c.List(ctx, &all, operatorApps); err != nil {
		return fmt.Errorf("looking for the operator: %w", err)
	}
	for _, d := range all.Items {
		if ptr.Deref(d.Spec.Replicas, 1) > 0 {
			i.operators = append(i.operators, d)
		}
	}
	return nil
}

func (i *inventory) addPolicies(ctx context.Context, c client.Client) error {
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	var policies admissionv1.ValidatingAdmissionPolicyList
	if err := errors.Join(c.List(ctx, &bindings, policyParts), c.List(ctx, &policies, policyParts)); err != nil {
		return fmt.Errorf("looking for admission policies: %w", err)
	}
	i.policies = append(withKind(pointers(bindings.Items), "ValidatingAdmissionPolicyBinding"), withKind(pointers(policies.Items), "ValidatingAdmissionPolicy")...)
	return nil
}

// withKind sets the kind of objects: a typed client leaves it out.
func withKind(objects []client.Object, kind string) []client.Object {
	for _, o := range objects {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Kind: kind})
	}
	return objects
}

// finalizedKinds are the kinds that Bindy and its Scout put finalizers on. Those of the Gateway API have the version that the Kubernetes cluster
// prefers; one that it does not know is left out.
func finalizedKinds(mapper meta.RESTMapper) (kinds []schema.GroupVersionKind, err error) {
	for _, kind := range v1beta1.RecordKinds {
		kinds = append(kinds, kind.GroupVersionKind())
	}
	for _, kind := range []string{"DNSZone", "Bind9Instance", "Bind9Cluster", "ClusterBind9Provider"} {
		kinds = append(kinds, v1beta1.GroupVersion.WithKind(kind))
	}
	kinds = append(kinds, corev1.SchemeGroupVersion.WithKind("Service"), schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"})
	for _, route := range []string{"HTTPRoute", "TLSRoute", "TCPRoute"} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: route})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the kind %s: %w", route, err)
		}
		kinds = append(kinds, mapping.GroupVersionKind)
	}
	return kinds, nil
}

func (i *inventory) addFinalized(ctx context.Context, c client.Client) error {
	kinds, err := finalizedKinds(c.RESTMapper())
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		err := eachMetadata(ctx, c, kind, func(o metav1.PartialObjectMetadata) {
			if len(v1beta1.FinalizersOfBindy(&o)) > 0 {
				o.SetGroupVersionKind(kind)
				i.finalized = append(i.finalized, o)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachMetadata lists all objects of a kind, which may not exist.
func eachMetadata(ctx context.Context, c client.Client, kind schema.GroupVersionKind, use func(metav1.PartialObjectMetadata), options ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for more := true; more; more = list.Continue != "" {
		err := c.List(ctx, list, append(options, client.Limit(pageSize), client.Continue(list.Continue))...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		for _, o := range list.Items {
			use(o)
		}
	}
	return nil
}

func (i *inventory) addInnerClusters(ctx context.Context, c client.Client) error {
	var clusters v1beta1.Bind9ClusterList
	if err := c.List(ctx, &clusters, client.MatchingLabels{v1beta1.ManagedByLabel: "ClusterBind9Provider"}); err != nil {
		return fmt.Errorf("looking for clusters of providers: %w", err)
	}
	for _, cluster := range clusters.Items {
		inner := innerCluster{cluster: cluster}
		err := c.Get(ctx, client.ObjectKey{Name: cluster.Labels[v1beta1.ClusterLabel]}, &inner.provider)
		if apierrors.IsNotFound(err) {
			continue // A user's own.
		}
		if err != nil {
			return fmt.Errorf("reading ClusterBind9Provider %s: %w", cluster.Labels[v1beta1.ClusterLabel], err)
		}
		if systemNamespace := cmp.Or(inner.provider.Spec.Namespace, i.systemNamespace); cluster.Namespace != systemNamespace { // Anybody may give a cluster these labels.
			i.lost = append(i.lost, fmt.Sprintf("Bind9Cluster %s/%s: ClusterBind9Provider %s has its instances in namespace %q here, by its spec.namespace",
				cluster.Namespace, cluster.Name, inner.provider.Name, systemNamespace))
			continue
		}
		var instances v1beta1.Bind9InstanceList
		if err := c.List(ctx, &instances, client.InNamespace(cluster.Namespace)); err != nil {
			return fmt.Errorf("reading the instances of Bind9Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
		}
		inner.instances = slices.DeleteFunc(instances.Items, func(o v1beta1.Bind9Instance) bool { return !metav1.IsControlledBy(&o, &cluster) })
		i.inner = append(i.inner, inner)
	}
	return nil
}

func (i *inventory) addServers(ctx context.Context, c client.Client) error {
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments, madeByBindy); err != nil {
		return fmt.Errorf("looking for former servers: %w", err)
	}
	for _, d := range deployments.Items {
		waits, err := whyNeeded(ctx, c, client.ObjectKeyFromObject(&d))
		if err != nil {
			return err
		}
		i.servers = append(i.servers, formerServer{d, waits})
	}
	return nil
}

// whyNeeded returns why an instance's queries still need the pods of its Deployment, "" if they do not.
func whyNeeded(ctx context.Context, c client.Client, key client.ObjectKey) (string, error) {
	var instance v1beta1.Bind9Instance
	var service corev1.Service
	var slices discoveryv1.EndpointSliceList
	if err := errors.Join(client.IgnoreNotFound(c.Get(ctx, key, &instance)), client.IgnoreNotFound(c.Get(ctx, key, &service)),
		c.List(ctx, &slices, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name})); err != nil {
		return "", fmt.Errorf("reading instance %s: %w", key, err)
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions, status.Ready)
	switch {
	case instance.Name == "":
		return "", nil // Nothing here is to take its place.
	case service.Name != "" && service.Labels[named.LabelManagedBy] != named.Manager || hasOtherPods(slices.Items, key.Name):
		return "its Service still has the former pods", nil
	case ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != instance.Generation:
		return "the instance is not ready: " + ptr.Deref(ready, metav1.Condition{Message: "no status yet"}).Message, nil
	}
	return "", nil
}

// hasOtherPods reports whether a Service sends queries to pods that are not of the StatefulSet of its name.
func hasOtherPods(all []discoveryv1.EndpointSlice, name string) bool {
	for _, slice := range all {
		for _, endpoint := range slice.Endpoints {
			ordinal, own := strings.CutPrefix(ptr.Deref(endpoint.TargetRef, corev1.ObjectReference{}).Name, name+"-")
			if _, err := strconv.Atoi(ordinal); !own || err != nil {
				return true
			}
		}
	}
	return false
}

func (i *inventory) addLeftovers(ctx context.Context, c client.Client) error {
	for _, kind := range []schema.GroupVersionKind{
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	} {
		err := eachMetadata(ctx, c, kind, func(o metav1.PartialObjectMetadata) {
			o.SetGroupVersionKind(kind)
			i.leftovers = append(i.leftovers, &o)
		}, madeByBindy)
		if err != nil {
			return err
		}
	}
	return nil
}

// addLost finds what users have that Lockstep does not do.
func (i *inventory) addLost(ctx context.Context, c client.Client) error {
	if slices.ContainsFunc(i.operators, func(d appsv1.Deployment) bool { return d.Labels["app"] == "bindy-scout" }) {
		i.lost = append(i.lost, "Scout: its ARecords stay, and new names come from external-dns (docs/guides/from-bindy.md)")
	}
	var instances v1beta1.Bind9InstanceList
	var clusters v1beta1.Bind9ClusterList
	var providers v1beta1.ClusterBind9ProviderList
	var zones v1beta1.DNSZoneList
	if err := errors.Join(c.List(ctx, &instances), c.List(ctx, &clusters), c.List(ctx, &providers), c.List(ctx, &zones)); err != nil {
		return fmt.Errorf("reading clusters, instances and zones: %w", err)
	}
	for n := range zones.Items {
		i.addSigned(&zones.Items[n])
	}
	for n := range instances.Items {
		o := &instances.Items[n]
		i.addIgnored("Bind9Instance", o, named.Workload{Instance: o})
	}
	for n := range clusters.Items {
		o := &clusters.Items[n]
		i.addIgnored("Bind9Cluster", o, named.Workload{Instance: &v1beta1.Bind9Instance{}, Cluster: o.Spec})
	}
	for n := range providers.Items {
		o := &providers.Items[n]
		i.addIgnored("ClusterBind9Provider", o, named.Workload{Instance: &v1beta1.Bind9Instance{}, Cluster: o.Spec.Bind9ClusterSpec})
	}
	return nil
}

// addSigned names a zone that Bindy's servers still sign: ours would sign it with other keys than those that the parent's DS records name.
func (i *inventory) addSigned(zone *v1beta1.DNSZone) {
	if signed := zone.Status.DNSSEC; signed != nil && signed.Signed && len(v1beta1.FinalizersOfBindy(zone)) > 0 {
		i.lost = append(i.lost, fmt.Sprintf("DNSZone %s/%s is signed: take its keys along before Lockstep is installed, or remove its DS records (docs/guides/from-bindy.md)",
			zone.Namespace, zone.Name))
	}
}

func (i *inventory) addIgnored(kind string, o client.Object, w named.Workload) {
	if ignored := w.Ignored(); len(ignored) > 0 {
		name := namesOf(kind, []client.Object{o})[0]
		i.lost = append(i.lost, name+": "+strings.Join(ignored, "; "))
	}
}
