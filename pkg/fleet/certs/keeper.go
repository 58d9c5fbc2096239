package certs

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// clockTick is how often the Keeper checks the wall clock. Timers follow the monotonic clock and would sleep through a jump
// of the wall clock, which is what verifiers go by.
const clockTick = time.Minute

// Keeper makes the authority, rolls it over, publishes its bundle, and issues certificates. One runs in the whole cluster:
// the fleet manager's leader, and nobody else reads the authority's key. It is a controller-runtime Runnable.
//
// It needs get, list, watch, create and update on the Secrets, and get, list, watch and patch on the targets.
type Keeper struct {
	// Client and Dynamic reach the cluster.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Secret holds the authority.
	Secret types.NamespacedName
	// Targets get the bundle. Those that do not exist are skipped until they do.
	Targets []Target
	// Recipients get certificates, in Secrets of the same namespace.
	Recipients []Recipient
	// Self is this process as a client of sidecars.
	Self Subject
	// Changed is called when the Bundle is another one than before.
	Changed func()
	Policy  Policy
	Log     logr.Logger

	now   func() time.Time
	known chan struct{} // closed when last is known

	mu     sync.Mutex
	last   State             // as last stored or read by this process
	client map[string][]byte // the certificate of Self, as Issue returned it
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
	return newKeeper(client, dyn, log, secret, targets...), nil
}

func newKeeper(client kubernetes.Interface, dyn dynamic.Interface, log logr.Logger, secret types.NamespacedName, targets ...Target) *Keeper {
	return &Keeper{
		Client: client, Dynamic: dyn, Secret: secret, Targets: targets, Policy: DefaultPolicy, Log: log, now: time.Now, known: make(chan struct{}),
	}
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

// Sync brings the authority, every target and every recipient's certificate to where they should be now.
func (k *Keeper) Sync(ctx context.Context) error {
	state, err := k.syncAuthority(ctx)
	if state.Signer == nil {
		return err
	}
	// A target that fails keeps nobody from a new certificate: the signer was published before it began to sign.
	errs := []error{err}
	for _, r := range k.Recipients {
		errs = append(errs, k.issueTo(ctx, state, r))
	}
	return errors.Join(errs...)
}

// syncAuthority ends when there is nothing left to do before the clock moves on. It returns the stored state, also with an
// error.
func (k *Keeper) syncAuthority(ctx context.Context) (State, error) {
	secret, state, err := k.loadState(ctx)
	if err != nil {
		return state, err
	}
	published := false
	for {
		next, changed, err := k.Policy.Advance(state, k.now(), published)
		if err != nil {
			return state, err
		}
		if changed {
			if secret, err = k.storeState(ctx, secret, next); err != nil {
				return state, err
			}
		} else if published {
			return next, nil
		}
		state = next
		if err := k.publishBundle(ctx, state); err != nil {
			return state, err
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
	k.remember(state)
	return secret, state, nil
}

// restoreSecret writes the Secret again from what this process last knew of it. When that is nothing, the authority starts anew.
func (k *Keeper) restoreSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, State, error) {
	if k.last.Signer == nil {
		return secret, State{}, nil
	}
	k.Log.Info("The authority's Secret is gone or unusable; it is made again, with a successor", "secret", k.Secret)
	state, err := k.Policy.Replace(k.last, k.now())
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
	secret, err := k.write(ctx, secret)
	if err != nil {
		return nil, err
	}
	k.remember(state)
	k.Log.Info("Stored the certificate authority", "secret", k.Secret, "notAfter", state.Signer.Cert.NotAfter,
		"rollingOver", state.Next != nil, "retired", len(state.Retired))
	return secret, nil
}

// write creates or updates a Secret, with optimistic locking.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret) (written *corev1.Secret, err error) {
	secrets := k.Client.CoreV1().Secrets(secret.Namespace)
	if secret.ResourceVersion == "" {
		written, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: FieldOwner})
	} else {
		written, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: FieldOwner})
	}
	if err != nil {
		return nil, fmt.Errorf("writing Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return written, nil
}

// publishBundle puts the bundle into every target; it tries them all.
func (k *Keeper) publishBundle(ctx context.Context, state State) error {
	var errs []error
	for _, target := range k.Targets {
		errs = append(errs, injectBundle(ctx, k.Dynamic, target, state.Bundle()))
	}
	return errors.Join(errs...)
}

// watchTargets wakes the loop on any change of a Secret or a target.
func (k *Keeper) watchTargets(ctx context.Context, wake chan<- struct{}) error {
	informers := []cache.SharedIndexInformer{watchSecret(k.Client, k.Secret)}
	for _, r := range k.Recipients {
		informers = append(informers, watchSecret(k.Client, types.NamespacedName{Namespace: k.Secret.Namespace, Name: r.Secret}))
	}
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
