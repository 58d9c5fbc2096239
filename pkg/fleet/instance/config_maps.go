package instance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// configMap reads a ConfigMap that a user has put in place of a configuration file, unless that was done a moment ago: the
// instances of a cluster mostly have the same. It is read by name: to watch it, the fleet manager would need the right to read
// all that there are.
func (w *workloads) configMap(ctx context.Context, name client.ObjectKey) (*corev1.ConfigMap, error) {
	if known, ok := w.configMaps.Get(name); ok {
		return known.(*corev1.ConfigMap), nil
	}
	configMap := &corev1.ConfigMap{}
	if err := w.client.Get(ctx, name, configMap); err != nil {
		return nil, err
	}
	w.configMaps.Set(name, configMap, apply.RereadAfter)
	return configMap, nil
}

// readReplacements reads the files that are in place of generated ones, because named reads them only when it starts. One
// that is missing stops every change of the pods, which go on as they are.
func (w *workloads) readReplacements(ctx context.Context, workload *named.Workload) error {
	replaced := workload.ReplacedFiles()
	workload.Replacements = map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(replaced)) {
		configMap, err := w.configMap(ctx, client.ObjectKey{Namespace: workload.Instance.Namespace, Name: replaced[file]})
		if apierrors.IsNotFound(err) {
			return err
		} else if err != nil {
			return fmt.Errorf("reading configMapRefs: %w", err)
		}
		if workload.Replacements[file], err = named.ReplacementIn(configMap, file); err != nil {
			return fmt.Errorf("%w: %w", named.ErrConfig, err)
		}
	}
	return nil
}
