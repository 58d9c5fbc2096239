package signingkeys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Store holds the key files of zones in Secrets, which somebody else creates.
type Store interface {
	// Load returns all entries of a Secret.
	Load(ctx context.Context, secret string) (map[string][]byte, error)
	// Save replaces the entries before, which were loaded or saved last, by after.
	Save(ctx context.Context, secret string, before, after map[string][]byte) error
}

// namespaceFile has the pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// secretStore uses the Secrets of the pod's own namespace, with the pod's credentials: these permit the Secrets of its
// zones' keys, by name, and no others. It has no client of Kubernetes' types: those of all kinds would come with it, and take more memory
// than the rest of the sidecar.
type secretStore struct {
	client    rest.Interface
	namespace string
}

// InCluster is the store of this pod.
func InCluster() (Store, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("preparing to reach the Kubernetes API: %w", err)
	}
	client, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to reach the Kubernetes API: %w", err)
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, fmt.Errorf("preparing to save signing keys: %w", err)
	}
	return &secretStore{client, strings.TrimSpace(string(namespace))}, nil
}

// newClient reaches the core group of the Kubernetes API, and decodes nothing but errors.
func newClient(config *rest.Config) (rest.Interface, error) {
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	return rest.RESTClientFor(config)
}

// Load implements Store.
func (s *secretStore) Load(ctx context.Context, name string) (map[string][]byte, error) {
	text, err := s.client.Get().Namespace(s.namespace).Resource("secrets").Name(name).Do(ctx).Raw()
	if err != nil {
		return nil, withoutObject(err)
	}
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	return secret.Data, json.Unmarshal(text, &secret)
}

// Save implements Store by a merge patch, which touches no other entry.
func (s *secretStore) Save(ctx context.Context, name string, before, after map[string][]byte) error {
	data := map[string]any{}
	for entry := range before {
		data[entry] = nil
	}
	for entry, content := range after {
		data[entry] = content
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	return withoutObject(s.client.Patch(types.MergePatchType).Namespace(s.namespace).Resource("secrets").Name(name).
		Param("fieldManager", "bindcar").Body(patch).Do(ctx).Error())
}

// withoutObject keeps the reason of an error, not the object that the API may have put into its message.
func withoutObject(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Errorf("the Secret of the zone's keys: %s", status.Status().Reason)
	}
	return err
}
