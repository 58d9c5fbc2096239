package signingkeys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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
// zones' keys, by name, and no others.
type secretStore struct {
	clients   kubernetes.Interface
	namespace string
}

// InCluster is the store of this pod.
func InCluster(clients kubernetes.Interface) (Store, error) {
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, fmt.Errorf("preparing to save signing keys: %w", err)
	}
	return &secretStore{clients, strings.TrimSpace(string(namespace))}, nil
}

// Load implements Store.
func (s *secretStore) Load(ctx context.Context, name string) (map[string][]byte, error) {
	secret, err := s.clients.CoreV1().Secrets(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, withoutObject(err)
	}
	return secret.Data, nil
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
	_, err = s.clients.CoreV1().Secrets(s.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "bindcar"})
	return withoutObject(err)
}

// withoutObject keeps the reason of an error, not the object that the API may have put into its message.
func withoutObject(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Errorf("the Secret of the zone's keys: %s", status.Status().Reason)
	}
	return err
}
