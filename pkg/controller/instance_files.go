package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// filesPace is how often the ConfigMaps that users put in place of configuration files are looked at. They are read by
// name: to watch them, the controller would have to be allowed to read all that there are.
const filesPace = 15 * time.Second

// configMaps has the ConfigMaps of users. The instances of a cluster mostly have the same; each is read once in a while
// for all of them. The zero value is empty.
type configMaps struct {
	mu    sync.Mutex
	known map[client.ObjectKey]readConfigMap
}

type readConfigMap struct {
	*corev1.ConfigMap
	at time.Time
}

// get reads a ConfigMap, unless that was done a moment ago.
func (c *configMaps) get(ctx context.Context, reader client.Reader, name client.ObjectKey, now time.Time) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(_ client.ObjectKey, read readConfigMap) bool { return now.Sub(read.at) >= filesPace/2 })
	if read, ok := c.known[name]; ok {
		return read.ConfigMap, nil
	}
	configMap := &corev1.ConfigMap{}
	if err := reader.Get(ctx, name, configMap); err != nil {
		return nil, err
	}
	if c.known == nil {
		c.known = map[client.ObjectKey]readConfigMap{}
	}
	c.known[name] = readConfigMap{configMap, now}
	return configMap, nil
}

// readReplacements reads the files that are in place of generated ones, because named reads them only when it starts. One
// that is missing stops every change of the pods: what runs goes on.
func (p *instancePass) readReplacements(ctx context.Context) error {
	replaced := p.workload.ReplacedFiles()
	if len(replaced) == 0 {
		return nil
	}
	p.lookAgain(filesPace)
	p.workload.Replacements = map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(replaced)) {
		name := client.ObjectKey{Namespace: p.instance.Namespace, Name: replaced[file]}
		configMap, err := p.configMaps.get(ctx, p.client, name, p.now())
		if apierrors.IsNotFound(err) {
			return err
		} else if err != nil {
			return fmt.Errorf("reading configMapRefs: %w", err)
		}
		content, err := entryOf(configMap, file)
		if err != nil {
			return err
		}
		p.workload.Replacements[file] = content
	}
	return nil
}

// entryOf is a file in a ConfigMap. The error wraps named.ErrConfig.
func entryOf(configMap *corev1.ConfigMap, file string) (string, error) {
	if text, ok := configMap.Data[file]; ok {
		return text, nil
	}
	if data, ok := configMap.BinaryData[file]; ok {
		return string(data), nil
	}
	return "", fmt.Errorf("%w: configMapRefs: ConfigMap %s has no entry %q", named.ErrConfig, configMap.Name, file)
}
