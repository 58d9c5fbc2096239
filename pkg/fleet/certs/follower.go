package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Follower is the certificate that the Keeper keeps in a Secret for one component, as the component has it. It is safe for
// concurrent use.
//
// It is a dynamiccertificates.CertKeyContentProvider for k8s.io/apiserver, gives a tls.Config its GetCertificate, is a health
// check that fails while there is no valid certificate, and has what a client connects with.
type Follower struct {
	client kubernetes.Interface
	secret types.NamespacedName
	now    func() time.Time

	// seen is closed when the Secret has been seen.
	seen chan struct{}

	mu        sync.Mutex
	held      *credentials
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = (*Follower)(nil)

// NewFollower follows a Secret once it runs. The client needs get, list and watch on that one Secret.
func NewFollower(client kubernetes.Interface, secret types.NamespacedName) *Follower {
	return &Follower{client: client, secret: secret, now: time.Now, seen: make(chan struct{})}
}

// Run follows the Secret until the context ends. It may be called before the Secret exists.
func (f *Follower) Run(ctx context.Context) {
	informer := watchSecret(f.client, f.secret)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.followSecret(ctx, obj) },
		UpdateFunc: func(_, obj any) { f.followSecret(ctx, obj) },
		// A deleted Secret changes nothing: the certificate stays good, and the fleet manager makes the Secret again.
	})
	if err != nil { // only when the informer has been stopped already
		klog.FromContext(ctx).Error(err, "Cannot follow the certificate's Secret", "secret", f.secret)
		return
	}
	informer.RunWithContext(ctx)
}

// Start is Run as a controller-runtime Runnable.
func (f *Follower) Start(ctx context.Context) error {
	f.Run(ctx)
	return nil
}

// NeedLeaderElection says that every replica follows the Secret.
func (f *Follower) NeedLeaderElection() bool { return false }

// followSecret takes over the certificate of a Secret that was added or changed. What cannot be used changes nothing.
func (f *Follower) followSecret(ctx context.Context, obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	if err := f.adopt(secret.Data); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot use the certificate's Secret; the present certificate stays", "secret", f.secret)
	}
}

// adopt takes over a certificate and notifies the listeners.
func (f *Follower) adopt(data map[string][]byte) error {
	held, err := parseCredentials(data)
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", f.secret, err)
	}
	f.mu.Lock()
	if f.held == nil {
		close(f.seen)
	}
	f.held = held
	listeners := f.listeners
	f.mu.Unlock()
	for _, l := range listeners {
		l.Enqueue()
	}
	return nil
}

// current is the certificate; an error until the Secret has been seen.
func (f *Follower) current() (*credentials, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		return nil, fmt.Errorf("no certificate yet: waiting for Secret %s, which the fleet manager makes", f.secret)
	}
	return f.held, nil
}

// GetCertificate is for the tls.Config of a server.
func (f *Follower) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	held, err := f.current()
	if err != nil {
		return nil, err
	}
	return &held.pair, nil
}

// ClientConfig is what a client connects with at this moment: its certificate, and the authorities that verify servers. It waits until
// the Secret has been seen.
func (f *Follower) ClientConfig(ctx context.Context) (*tls.Config, error) {
	select {
	case <-f.seen:
	case <-ctx.Done():
	}
	held, err := f.current()
	if err != nil {
		return nil, err
	}
	return held.clientConfig(), nil
}

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider: certificate and key as PEM, both nil before
// there is a certificate.
func (f *Follower) CurrentCertKeyContent() (cert, key []byte) {
	held, err := f.current()
	if err != nil {
		return nil, nil
	}
	return held.data[corev1.TLSCertKey], held.data[corev1.TLSPrivateKeyKey]
}

// AddListener implements dynamiccertificates.Notifier.
func (f *Follower) AddListener(listener dynamiccertificates.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, listener)
}

// Name names the certificate, also as a health check.
func (f *Follower) Name() string { return "certificate" }

// Check is a health check: it fails while there is no valid certificate.
func (f *Follower) Check(*http.Request) error { return f.Ready() }

// Ready says what is missing while there is no valid certificate.
func (f *Follower) Ready() error {
	held, err := f.current()
	if err != nil {
		return err
	}
	if leaf := held.pair.Leaf; !isValid(leaf, f.now()) {
		return fmt.Errorf("the certificate in Secret %s is valid from %s to %s: the fleet manager renews it, if it runs and its clock is right",
			f.secret, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// watchSecret makes an informer of one Secret, so that rights on that Secret alone are enough.
func watchSecret(client kubernetes.Interface, key types.NamespacedName) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(key.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", key.Name).String()
		}))
	return factory.Core().V1().Secrets().Informer()
}
