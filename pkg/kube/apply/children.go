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
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	// repairPause is how much later each further change by others is undone, up to CacheLag, until there was peace for a minute.
	repairPause, peace = 500 * time.Millisecond, time.Minute
	// RereadAfter is how long what was read by name, because it is not watched, is not read again.
	RereadAfter = 1500 * time.Millisecond
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

// appliedChild is what was applied last under one name, and the object that came of it.
type appliedChild struct {
	digest string
	at     time.Time
	// uid and version are those of the object at that time: one with others was made or changed by somebody else, if it is not older.
	uid             types.UID
	version         string
	resourceVersion string
	// arrived is true once the cache has had the object: it is gone if the cache has none.
	arrived bool
	// repairs counts the changes by others that were undone one soon after the other.
	repairs int
	// seen is when the object was looked at last, if it is of a kind that is read by name.
	seen time.Time
}

// Configuration is the apply configuration of one object.
type Configuration interface {
	runtime.ApplyConfiguration
	GetName() *string
	GetNamespace() *string
	GetAPIVersion() *string
	GetKind() *string
}

// StampDigest hashes a configuration and annotates it with the digest.
func StampDigest[T interface {
	WithAnnotations(annotations map[string]string) T
}](child T) (digest string, err error) {
	if digest, err = digestOf(child); err == nil {
		child.WithAnnotations(map[string]string{digestAnnotation: digest})
	}
	return digest, err
}

// IsApplied compares a digest with the annotation of a cached object.
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

// Apply brings objects about. Of those that the controller does not watch as a whole the cache has the metadata; Secrets and
// ConfigMaps are read one at a time and by name.
func (c *Children) Apply(ctx context.Context, children ...Configuration) error {
	for _, child := range children {
		digest, err := digestOf(child)
		if err != nil {
			return err
		}
		name := nameOfChild(child)
		if c.wasJustSeen(name, digest, time.Now()) {
			continue
		}
		found, err := c.readMetadata(ctx, child)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if err := c.apply(ctx, child, name, digest, found); err != nil {
			return err
		}
	}
	return nil
}

// isReadByName is true for children of kinds that are not watched: watching needs the right to read all objects of the kind.
func isReadByName(kind string) bool { return kind == "Secret" || kind == "ConfigMap" }

// wasJustSeen spares the read of a child that was read by name a moment ago.
func (c *Children) wasJustSeen(name, digest string, now time.Time) bool {
	known := c.lastApplied(name)
	return known.digest == digest && now.Sub(known.seen) < RereadAfter
}

// readMetadata reads the metadata of the object with a child's name; it is empty if there is none.
func (c *Children) readMetadata(ctx context.Context, child Configuration) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(schema.FromAPIVersionAndKind(*child.GetAPIVersion(), *child.GetKind()))
	var options []client.GetOption
	if isReadByName(*child.GetKind()) {
		// From the memory of kube-apiserver (resourceVersion 0), which costs it next to nothing.
		options = append(options, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
	}
	key := client.ObjectKey{Namespace: ptr.Deref(child.GetNamespace(), ""), Name: *child.GetName()}
	return found, client.IgnoreNotFound(c.client.Get(ctx, key, found, options...))
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

func (c *Children) apply(ctx context.Context, child runtime.ApplyConfiguration, name, digest string, found client.Object) error {
	now := time.Now()
	known := c.lastApplied(name)
	if !known.isUnchanged(digest, found, now) {
		written, err := writeOwned(ctx, c.client, child)
		if err != nil {
			return fmt.Errorf("applying %s: %w", name, err)
		}
		next := appliedChild{digest: digest, at: now, uid: written.GetUID(), version: versionOf(written), resourceVersion: written.GetResourceVersion()}
		if known.digest == digest {
			next.repairs = 1
			if now.Sub(known.at) < peace {
				next.repairs += known.repairs
			}
		}
		known = next
	}
	known.arrived = known.arrived || found.GetUID() == known.uid
	known.seen = time.Time{}
	if kind, _, _ := strings.Cut(name, " "); isReadByName(kind) {
		known.seen = now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied.Set(name, known, known.at.Add(reapplyAfter).Sub(now))
	return nil
}

// lastApplied is what was applied under a name; the zero value if that was long ago.
func (c *Children) lastApplied(name string) appliedChild {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, _ := c.applied.Get(name)
	known, _ := entry.(appliedChild)
	return known
}

// isUnchanged reports whether the object that was found is what was applied, or may be so once the cache is up to date. It is taken for
// unchanged, too, while others change it again and again and the next repair is not due.
func (a appliedChild) isUnchanged(digest string, found client.Object, now time.Time) bool {
	switch age := now.Sub(a.at); {
	case a.digest != digest:
		return false
	case found.GetUID() == a.uid && versionOf(found) == a.version:
		return true
	case a.mayFollow(found):
		return age < CacheLag
	default:
		return age < min(CacheLag, time.Duration(a.repairs)*repairPause)
	}
}

// mayFollow reports whether what was found may be from before the object was applied.
func (a appliedChild) mayFollow(found client.Object) bool {
	if found.GetUID() == "" {
		return !a.arrived
	}
	return isOlder(found.GetResourceVersion(), a.resourceVersion)
}

// versionOf changes with the specification: it is the generation where the kind has one, else the resource version.
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

// IsNamespaceTerminating reports whether nothing can be created in a namespace any more because it is being deleted.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
