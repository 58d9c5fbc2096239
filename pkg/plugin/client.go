package plugin

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

const resource = "syncstatuses"

// client reads SyncStatus objects.
type client struct {
	rest rest.Interface
	// namespace is the one to look in, "" for all.
	namespace string
}

// connect makes a client from kubeconfig and flags; nothing is asked yet.
func (o *options) connect() (*client, error) {
	deferred := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.loading, &o.overrides)
	config, err := deferred.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c := &client{}
	if !o.everywhere {
		if c.namespace, _, err = deferred.Namespace(); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("kinds of the API: %w", err)
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent, config.QPS = "kubectl-lockstep", -1
	c.rest, err = rest.RESTClientFor(config)
	return c, err
}

// query selects objects in the client's namespace.
type query struct {
	fields fields.Set
	labels string
}

func (q query) into(o *metav1.ListOptions) {
	o.FieldSelector, o.LabelSelector = q.fields.AsSelector().String(), q.labels
}

// get asks for one object. The answer is about the object as it is in the cluster now.
func (c *client) get(ctx context.Context, t target) (*v1alpha1.SyncStatus, error) {
	s := &v1alpha1.SyncStatus{}
	err := c.rest.Get().Namespace(c.namespace).Resource(resource).Name(t.status()).Do(ctx).Into(s)
	return s, c.explain(err, t)
}

// list asks for what any of the queries selects.
func (c *client) list(ctx context.Context, queries ...query) ([]v1alpha1.SyncStatus, error) {
	found := world{}
	for _, q := range queries {
		var o metav1.ListOptions
		q.into(&o)
		all := &v1alpha1.SyncStatusList{}
		err := c.rest.Get().Namespace(c.namespace).Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(all)
		if err != nil {
			return nil, c.explain(err, target{})
		}
		for i := range all.Items {
			found.put(&all.Items[i])
		}
	}
	return found.items(), nil
}
