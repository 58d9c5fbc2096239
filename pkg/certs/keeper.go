package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Keeper makes the authority, rolls it over, and publishes its bundle. One runs in the whole cluster: the controller's
// leader. It is a controller-runtime Runnable.
//
// It needs get, list, watch, create and update on the Secret, and get, list, watch and patch on the targets.
type Keeper struct {
	// Client and Dynamic reach the cluster.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Secret holds the authority.
	Secret types.NamespacedName
	// Targets get the bundle. Those that do not exist are skipped until they do.
	Targets []Target
	Policy  Policy
	Log     logr.Logger

	last State // as last stored or read by this process
}

// NewKeeper prepares a Keeper with the default policy.
func NewKeeper(config *rest.Config, log logr.Logger, secret types.NamespacedName, targets ...Target) (*Keeper, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the authority: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the authority's bundle: %w", err)
	}
	return &Keeper{Client: client, Dynamic: dyn, Secret: secret, Targets: targets, Policy: DefaultPolicy, Log: log}, nil
}

// NeedLeaderElection says that only the leader keeps the authority.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps the authority until the context ends. It acts on every change of the Secret and of the targets, and when
// the clock says so.
func (k *Keeper) Start(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	if err := k.watchTargets(ctx, wake); err != nil {
		return err
	}
	retry := newBackoff()
	for {
		pause := clockTick
		if err := k.Sync(ctx); err != nil && ctx.Err() == nil {
			pause = retry.Step()
			k.Log.Error(err, "Cannot keep the certificate authority", "retryAfter", pause.String())
		} else {
			retry = newBackoff()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(pause):
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
}

// Sync brings the Secret and every target to where they should be now. It ends when there is nothing left to do before
// the clock moves on.
func (k *Keeper) Sync(ctx context.Context) error {
	secret, state, err := k.loadState(ctx)
	if err != nil {
		return err
	}
	published := false
	for {
		next, changed, err := k.Policy.Advance(state, time.Now(), published)
		if err != nil {
			return err
		}
		if changed {
			if secret, err = k.storeState(ctx, secret, next); err != nil {
				return err
			}
		} else if published {
			return nil
		}
		state = next
		if err := k.publishBundle(ctx, state); err != nil {
			return err
		}
		published = true
	}
}

// loadState reads the Secret; one that does not exist has no resourceVersion yet.
func (k *Keeper) loadState(ctx context.Context) (*corev1.Secret, State, error) {
	secret, err := k.Client.CoreV1().Secrets(k.Secret.Namespace).Get(ctx, k.Secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return k.restoreSecret(ctx, newSecret(k.Secret))
	case err != nil:
		return nil, State{}, fmt.Errorf("reading Secret %s: %w", k.Secret, err)
	}
	state, err := ReadSecret(secret)
	if err != nil {
		k.Log.Error(err, "The authority's Secret is unusable", "secret", k.Secret)
		return k.restoreSecret(ctx, secret)
	}
	k.last = state
	return secret, state, nil
}

// restoreSecret writes the Secret again from what this process last knew of it. When that is nothing, the authority starts anew.
func (k *Keeper) restoreSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, State, error) {
	if k.last.Signer == nil {
		return secret, State{}, nil
	}
	k.Log.Info("The authority's Secret is gone or unusable; it is made again, with a successor", "secret", k.Secret)
	state, err := k.Policy.Replace(k.last, time.Now())
	if err != nil {
		return nil, State{}, err
	}
	secret, err = k.storeState(ctx, secret, state)
	return secret, state, err
}

// storeState writes the state, with optimistic locking: a Secret that somebody else changed meanwhile is a conflict.
func (k *Keeper) storeState(ctx context.Context, secret *corev1.Secret, state State) (*corev1.Secret, error) {
	secret = secret.DeepCopy()
	if err := writeSecret(state, secret); err != nil {
		return nil, err
	}
	secrets := k.Client.CoreV1().Secrets(k.Secret.Namespace)
	var err error
	if secret.ResourceVersion == "" {
		secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: FieldOwner})
	} else {
		secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: FieldOwner})
	}
	if err != nil {
		return nil, fmt.Errorf("writing Secret %s: %w", k.Secret, err)
	}
	k.last = state
	k.Log.Info("Stored the certificate authority", "secret", k.Secret, "notAfter", state.Signer.Cert.NotAfter,
		"rollingOver", state.Next != nil, "retired", len(state.Retired))
	return secret, nil
}

// publishBundle puts the bundle into every target; it tries them all.
func (k *Keeper) publishBundle(ctx context.Context, state State) error {
	var errs []error
	for _, target := range k.Targets {
		errs = append(errs, injectBundle(ctx, k.Dynamic, target, state.Bundle()))
	}
	return errors.Join(errs...)
}

// watchTargets wakes the loop on any change of the Secret or a target.
func (k *Keeper) watchTargets(ctx context.Context, wake chan<- struct{}) error {
	informers := []cache.SharedIndexInformer{watchSecret(k.Client, k.Secret)}
	for _, target := range k.Targets {
		informers = append(informers, dynamicinformer.NewFilteredDynamicInformer(k.Dynamic, target.Resource, metav1.NamespaceAll, 0, cache.Indexers{},
			func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector("metadata.name", target.Name).String()
			}).Informer())
	}
	poke := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	for _, informer := range informers {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { poke() },
			UpdateFunc: func(_, _ any) { poke() },
			DeleteFunc: func(any) { poke() },
		}); err != nil {
			return fmt.Errorf("watching the authority and its targets: %w", err)
		}
		go informer.RunWithContext(ctx)
	}
	return nil
}
