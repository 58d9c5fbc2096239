package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// appliedAnnotation on an object is the digest of what was applied, so that a cached copy tells whether it has arrived.
const appliedAnnotation = v1beta1.GroupName + "/applied"

// appliedLife is after how long an unchanged object is applied again, for changes by others that no event shows.
const appliedLife = 10 * time.Minute

// applier applies children by server-side apply, and leaves out what would change nothing.
type applier struct {
	client client.Client

	mu   sync.Mutex
	done map[string]applied
}

type applied struct {
	digest string
	at     time.Time
	// version of the cached object in which the digest first showed; another one later means that somebody changed it.
	version string
}

// childConfiguration is an apply configuration of one object.
type childConfiguration interface {
	runtime.ApplyConfiguration
	GetName() *string
	GetNamespace() *string
	GetKind() *string
}

func digestOf(configuration any) (string, error) {
	text, err := json.Marshal(configuration)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

func keyOf(c childConfiguration) string {
	key := *c.GetKind() + " "
	if namespace := c.GetNamespace(); namespace != nil {
		key += *namespace
	}
	return key + "/" + *c.GetName()
}

// apply makes the object as configured. cached is the cache's copy of it, nil when it has none or is of a kind that is
// not cached. digest is what digestOf said before the annotation was added to the configuration.
func (a *applier) apply(ctx context.Context, c childConfiguration, digest string, cached client.Object) error {
	key, now := keyOf(c), time.Now()
	if a.unchanged(key, digest, cached, now) {
		return nil
	}
	var target runtime.ApplyConfiguration = c
	if instance, ok := c.(instanceConfiguration); ok {
		target = client.ApplyConfigurationFromUnstructured(instance.Unstructured)
	}
	if err := a.client.Apply(ctx, target, client.FieldOwner(syncevent.FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s: %w", key, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done == nil {
		a.done = map[string]applied{}
	}
	a.done[key] = applied{digest: digest, at: now}
	return nil
}

// applyUncached applies an object of a kind that the controller does not watch.
func (a *applier) applyUncached(ctx context.Context, c childConfiguration) error {
	digest, err := digestOf(c)
	if err != nil {
		return err
	}
	return a.apply(ctx, c, digest, nil)
}

// settling is how long the cache may lag behind what was applied.
const settling = 5 * time.Second

func (a *applier) unchanged(key, digest string, cached client.Object, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.done[key]
	if !ok || known.digest != digest || now.Sub(known.at) > appliedLife {
		return false
	}
	switch {
	case cached == nil:
		return true
	case cached.GetUID() == "" || cached.GetAnnotations()[appliedAnnotation] != digest:
		return now.Sub(known.at) < settling
	case known.version == "":
		known.version = versionOf(cached)
		a.done[key] = known
		return true
	}
	return known.version == versionOf(cached)
}

// versionOf changes with the specification: the generation where the kind has one, else the resource version.
func versionOf(o client.Object) string {
	if g := o.GetGeneration(); g > 0 {
		return strconv.FormatInt(g, 10)
	}
	return o.GetResourceVersion()
}
