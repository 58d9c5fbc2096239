// Package apply holds the ways in which reconcilers write to Kubernetes: children, statuses and metadata. Each is
// written only when that changes something. The package decides nothing about content.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// digestAnnotation holds the digest of what was applied, so that a cached copy shows whether it has arrived.
const digestAnnotation = v1beta1.GroupName + "/applied"

const (
	// reapplyAfter is when an unchanged object is applied again, to undo changes by others that no event shows.
	reapplyAfter = 10 * time.Minute
	// CacheLag is how long the informers' cache may be behind what was applied.
	CacheLag = 5 * time.Second
)

// Children applies the objects that a reconciler makes and skips those that are as they should be. It is safe for
// concurrent use.
type Children struct {
	client client.Client

	mu      sync.Mutex
	applied *cache.Expiring
}

// NewChildren returns Children that writes with c.
func NewChildren(c client.Client) *Children {
	return &Children{client: c, applied: cache.NewExpiring()}
}

// appliedChild is what was applied last under one name.
type appliedChild struct {
	digest string
	at     time.Time
	// version is that of the cached object in which the digest first showed; another one means that somebody changed it.
	version string
}

// Configuration is the apply configuration of one object.
type Configuration interface {
	runtime.ApplyConfiguration
	GetName() *string
	GetNamespace() *string
	GetKind() *string
}

// StampDigest returns the digest of a configuration, which it adds as an annotation.
func StampDigest[T interface {
	WithAnnotations(annotations map[string]string) T
}](child T) (digest string, err error) {
	if digest, err = digestOf(child); err == nil {
		child.WithAnnotations(map[string]string{digestAnnotation: digest})
	}
	return digest, err
}

// IsApplied reports whether a cached object shows the configuration with the digest.
func IsApplied(cached client.Object, digest string) bool {
	return cached.GetUID() != "" && cached.GetAnnotations()[digestAnnotation] == digest
}

// ApplyUnstructured brings an object about that the controller watches and that has no typed configuration. cached is the
// cache's copy, an empty object when it has none.
func (c *Children) ApplyUnstructured(ctx context.Context, child *unstructured.Unstructured, cached client.Object) error {
	digest, err := digestOf(child)
	if err != nil {
		return err
	}
	annotations := child.GetAnnotations()
	annotations[digestAnnotation] = digest
	child.SetAnnotations(annotations)
	name := nameOf(child.GetKind(), child.GetNamespace(), child.GetName())
	return c.apply(ctx, client.ApplyConfigurationFromUnstructured(child), name, digest, cached)
}

// ApplyCached brings an object about that the controller watches. digest comes from StampDigest; cached is the cache's copy,
// an empty object when it has none.
func (c *Children) ApplyCached(ctx context.Context, child Configuration, digest string, cached client.Object) error {
	return c.apply(ctx, child, nameOfChild(child), digest, cached)
}

// Apply brings objects about of kinds that the controller does not watch.
func (c *Children) Apply(ctx context.Context, children ...Configuration) error {
	for _, child := range children {
		digest, err := digestOf(child)
		if err != nil {
			return err
		}
		if err := c.apply(ctx, child, nameOfChild(child), digest, nil); err != nil {
			return err
		}
	}
	return nil
}

// IsKnown reports whether an object was applied lately.
func (c *Children) IsKnown(child Configuration) bool {
	_, ok := c.applied.Get(nameOfChild(child))
	return ok
}

func nameOfChild(c Configuration) string {
	return nameOf(*c.GetKind(), ptr.Deref(c.GetNamespace(), ""), *c.GetName())
}

func nameOf(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func (c *Children) apply(ctx context.Context, child runtime.ApplyConfiguration, name, digest string, cached client.Object) error {
	now := time.Now()
	if c.isUnchanged(name, digest, cached, now) {
		return nil
	}
	if err := writeOwned(ctx, c.client, child); err != nil {
		return fmt.Errorf("applying %s: %w", name, err)
	}
	c.applied.Set(name, appliedChild{digest: digest, at: now}, reapplyAfter)
	return nil
}

func (c *Children) isUnchanged(name, digest string, cached client.Object, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.applied.Get(name)
	known, _ := entry.(appliedChild)
	switch {
	case !ok || known.digest != digest:
		return false
	case cached == nil:
		return true
	case !IsApplied(cached, digest):
		return now.Sub(known.at) < CacheLag
	case known.version == "":
		known.version = versionOf(cached)
		c.applied.Set(name, known, known.at.Add(reapplyAfter).Sub(now))
		return true
	}
	return known.version == versionOf(cached)
}

// versionOf returns what changes with the specification: the generation where the kind has one, else the resource version.
func versionOf(o client.Object) string {
	if g := o.GetGeneration(); g > 0 {
		return strconv.FormatInt(g, 10)
	}
	return o.GetResourceVersion()
}

func digestOf(configuration any) (string, error) {
	text, err := json.Marshal(configuration)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// IsNamespaceTerminating reports whether an error means that nothing can be made in a namespace any more because it is
// being deleted.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
