package bindcar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// keyStore keeps the key files of zones by the name of a Secret, which somebody else makes.
type keyStore interface {
	load(ctx context.Context, secret string) (keyFiles, error)
	// save makes after of what is there; before is what was loaded or saved last.
	save(ctx context.Context, secret string, before, after keyFiles) error
}

// namespaceFile tells a pod the namespace that it is in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// secretStore keeps them in the pod's own namespace, with the credentials of the pod: these reach the Secrets of keys of
// this namespace by name, and no other.
type secretStore struct {
	clients   kubernetes.Interface
	namespace string
}

func inClusterKeys() (keyStore, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("preparing to keep keys: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to keep keys: %w", err)
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, fmt.Errorf("preparing to keep keys: %w", err)
	}
	return &secretStore{clients, strings.TrimSpace(string(namespace))}, nil
}

func (s *secretStore) load(ctx context.Context, name string) (keyFiles, error) {
	secret, err := s.clients.CoreV1().Secrets(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explained(err)
	}
	return secret.Data, nil
}

// save is a merge patch: it touches no other entry.
func (s *secretStore) save(ctx context.Context, name string, before, after keyFiles) error {
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
	return explained(err)
}

// explained keeps what went wrong and leaves out the objects that the API may have put into its error.
func explained(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Errorf("the Secret of the zone's keys: %s", status.Status().Reason)
	}
	return err
}

// keptKeys remembers what is kept, by Secret. The zero value is empty.
type keptKeys struct {
	mu    sync.Mutex
	known map[string]keyFiles
}

func (k *keptKeys) get(secret string) (keyFiles, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	files, ok := k.known[secret]
	return files, ok
}

func (k *keptKeys) set(secret string, files keyFiles) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]keyFiles{}
	}
	k.known[secret] = files
}
