package review

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// watchedKinds are the kinds that are looked up by their name alone.
func watchedKinds() []client.Object {
	return []client.Object{&v1beta1.Bind9Instance{}, &v1beta1.Bind9Cluster{}, &v1beta1.Bind9GlobalCluster{}, &v1beta1.ClusterBind9Provider{}, &v1beta1.ZoneGrant{}, &v1beta1.DNSProvider{}, namespaceMetadata("")}
}

// namespaceMetadata is a namespace of which only the metadata is of interest.
func namespaceMetadata(name string) *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return ns
}

func startInformers(ctx context.Context, c cache.Cache) error {
	for _, o := range watchedKinds() {
		if _, err := c.GetInformer(ctx, o); err != nil {
			return fmt.Errorf("watching %T: %w", o, err)
		}
	}
	return nil
}

func (o *CachedObjects) hasCluster(ctx context.Context, namespace, name string) (bool, error) {
	return clusterExists(ctx, o.reader, namespace, name)
}

// clusterExists looks for a cluster in a namespace or, without one, among those of all namespaces.
func clusterExists(ctx context.Context, reader client.Reader, namespace, name string) (bool, error) {
	kinds := []client.Object{&v1beta1.Bind9GlobalCluster{}, &v1beta1.ClusterBind9Provider{}}
	if namespace != "" {
		kinds = []client.Object{&v1beta1.Bind9Cluster{}}
	}
	for _, kind := range kinds {
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, kind)
		switch {
		case err == nil && kind.GetDeletionTimestamp() == nil:
			return true, nil
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("looking for %T %s: %w", kind, name, err)
		}
	}
	return false, nil
}

func (o *CachedObjects) terminating(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	ns := namespaceMetadata("")
	if err := o.reader.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return ns.DeletionTimestamp != nil, nil
}

// readFleet reads what decides on which servers zones are.
func readFleet(ctx context.Context, reader client.Reader, home string, instances []*v1beta1.Bind9Instance, options ...client.ListOption) (*membership.Fleet, error) {
	var clusters v1beta1.Bind9GlobalClusterList
	var providers v1beta1.ClusterBind9ProviderList
	var grants v1beta1.ZoneGrantList
	var dnsProviders v1beta1.DNSProviderList
	for _, list := range []client.ObjectList{&clusters, &providers, &grants, &dnsProviders} {
		if err := reader.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	return membership.NewFleet(membership.FleetObjects{
		Instances: instances, Clusters: pointersTo(clusters.Items), Providers: pointersTo(providers.Items), Grants: pointersTo(grants.Items),
		DNSProviders: pointersTo(dnsProviders.Items),
	}, home), nil
}
