package clusterapi

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
)

const (
	// clusterGroup and clusterName are the group and the kind of Cluster API's clusters.
	clusterGroup = "cluster.x-k8s.io"
	clusterName  = "Cluster"
	// pausedAnnotation stops controllers from working on an object (Cluster API, PausedAnnotation).
	pausedAnnotation = clusterGroup + "/paused"
)

// clusters reads Clusters, whatever version of them is served.
type clusters struct {
	client client.Client
	kind   schema.GroupVersionKind
}

// read returns a Cluster; nil if there is none.
func (c clusters) read(ctx context.Context, key client.ObjectKey) (*unstructured.Unstructured, error) {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(c.kind)
	if err := c.client.Get(ctx, key, cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Cluster %s: %w", key.Name, err)
	}
	return cluster, nil
}

// ownerOf returns the Cluster that owns an object; nil if none does (yet).
func (c clusters) ownerOf(ctx context.Context, o client.Object) (*unstructured.Unstructured, error) {
	ref := ownerReference(o)
	if ref == nil {
		return nil, nil
	}
	cluster, err := c.read(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name})
	if cluster == nil || cluster.GetUID() != ref.UID {
		return nil, err
	}
	return cluster, nil
}

// ownerReference returns an object's reference to its Cluster, nil if it has none.
func ownerReference(o client.Object) *metav1.OwnerReference {
	for _, ref := range o.GetOwnerReferences() {
		if group, _, _ := strings.Cut(ref.APIVersion, "/"); group == clusterGroup && ref.Kind == clusterName {
			return &ref
		}
	}
	return nil
}

// isPaused reports whether controllers are to leave a Cluster and what belongs to it alone.
func isPaused(cluster *unstructured.Unstructured, o client.Object) bool {
	paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused")
	_, own := o.GetAnnotations()[pausedAnnotation]
	return paused || own
}

// endpointIn returns the endpoint in the spec of a Cluster, zero if it has none.
func endpointIn(cluster *unstructured.Unstructured) (e infrastructure.APIEndpoint) {
	e.Host, _, _ = unstructured.NestedString(cluster.Object, "spec", "controlPlaneEndpoint", "host")
	port, _, _ := unstructured.NestedInt64(cluster.Object, "spec", "controlPlaneEndpoint", "port")
	e.Port = int32(min(max(port, 0), 65535))
	return e
}

// effectiveEndpoint returns an object's own endpoint or, if it has none, the Cluster's.
func effectiveEndpoint(own infrastructure.APIEndpoint, cluster *unstructured.Unstructured) infrastructure.APIEndpoint {
	if own.Host == "" {
		return endpointIn(cluster)
	}
	return own
}

// formatEndpoint returns "host:port", or the host alone without a port.
func formatEndpoint(e infrastructure.APIEndpoint) string {
	if e.Host == "" || e.Port == 0 {
		return e.Host
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// refersTo reports whether a field of a Cluster's spec refers to an object of a kind, by apiVersion or, since v1beta2, by apiGroup.
func refersTo(cluster *unstructured.Unstructured, field string, kind schema.GroupVersionKind) (name string, is bool) {
	ref, _, _ := unstructured.NestedStringMap(cluster.Object, "spec", field)
	group, _, _ := strings.Cut(ref["apiVersion"], "/")
	return ref["name"], ref["kind"] == kind.Kind && (ref["apiGroup"] == kind.Group || group == kind.Group)
}

// endpointOf returns the endpoint of a Cluster: its own, else that of its control plane or of its infrastructure, which Cluster API
// copies to it only when these are ready, and they wait for the name.
func (c clusters) endpointOf(ctx context.Context, cluster *unstructured.Unstructured) (infrastructure.APIEndpoint, error) {
	own := endpointIn(cluster)
	if name, is := refersTo(cluster, "controlPlaneRef", controlPlaneKind); own.Host == "" && is {
		o := &controlplane.CAPTControlPlane{}
		if err := c.readChild(ctx, cluster, name, o); err != nil {
			return own, err
		}
		own = o.Spec.ControlPlaneEndpoint
	}
	if name, is := refersTo(cluster, "infrastructureRef", infrastructureKind); own.Host == "" && is {
		o := &infrastructure.CAPTCluster{}
		if err := c.readChild(ctx, cluster, name, o); err != nil {
			return own, err
		}
		own = o.Spec.ControlPlaneEndpoint
	}
	return own, nil
}

// readChild reads an object that a Cluster refers to, and leaves it empty if there is none that the Cluster owns.
func (c clusters) readChild(ctx context.Context, cluster *unstructured.Unstructured, name string, o client.Object) error {
	if err := client.IgnoreNotFound(c.client.Get(ctx, client.ObjectKey{Namespace: cluster.GetNamespace(), Name: name}, o)); err != nil {
		return fmt.Errorf("reading %T %s: %w", o, name, err)
	}
	if ref := ownerReference(o); ref == nil || ref.UID != cluster.GetUID() {
		switch o := o.(type) {
		case *controlplane.CAPTControlPlane:
			*o = controlplane.CAPTControlPlane{}
		case *infrastructure.CAPTCluster:
			*o = infrastructure.CAPTCluster{}
		}
	}
	return nil
}

// bearerOf returns whose annotations ask for the name of an object that a Cluster owns: its own, else the Cluster's.
func (c clusters) bearerOf(ctx context.Context, cluster *unstructured.Unstructured, o bearer) (bearer, error) {
	if wantsName(o) || !wantsName(cluster) {
		return o, nil
	}
	endpoint, err := c.endpointOf(ctx, cluster)
	return bearer{Object: cluster, kind: c.kind, cluster: cluster.GetName(), host: endpoint.Host}, err
}
