package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// ErrNoCertificate says that the authority's Secret has not been seen yet.
var ErrNoCertificate = errors.New("no serving certificate yet: waiting for the authority's Secret, which the controller makes")

// clockTick is how often Serving and Keeper look at the wall clock. Timers follow the monotonic clock and would sleep
// through a jump of the wall clock, which is what verifiers go by.
const clockTick = time.Minute

// Serving is the serving certificate of one server. It is safe for concurrent use.
//
// It is a dynamiccertificates.CertKeyContentProvider for k8s.io/apiserver, gives a tls.Config its GetCertificate, and is
// a health check that fails until there is a certificate.
type Serving struct {
	client kubernetes.Interface
	secret types.NamespacedName
	names  []string
	life   time.Duration
	now    func() time.Time

	mu        sync.Mutex
	signer    *Authority
	roots     *x509.CertPool
	leaf      *Leaf
	pair      *tls.Certificate
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = (*Serving)(nil)

// NewServing prepares a serving certificate for the DNS names, minted from the authority in the Secret. The client needs
// get, list and watch on that one Secret. Nothing happens before Run.
func NewServing(client kubernetes.Interface, secret types.NamespacedName, dnsNames ...string) *Serving {
	return &Serving{client: client, secret: secret, names: dnsNames, life: DefaultPolicy.LeafLife, now: time.Now}
}

// Run follows the Secret and renews the certificate until the context ends. It may be called before the Secret exists.
func (s *Serving) Run(ctx context.Context) {
	informer := watchSecret(s.client, s.secret)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.followSecret(ctx, obj) },
		UpdateFunc: func(_, obj any) { s.followSecret(ctx, obj) },
		// A deleted Secret changes nothing: the certificate stays good, and the controller makes the Secret again.
	})
	if err != nil { // only when the informer has been stopped already
		klog.FromContext(ctx).Error(err, "Cannot follow the authority's Secret", "secret", s.secret)
		return
	}
	go informer.RunWithContext(ctx)
	s.keepFresh(ctx)
}

// keepFresh renews the certificate in time, until the context ends: k8s.io/apiserver asks for one only after a
// notification.
func (s *Serving) keepFresh(ctx context.Context) {
	ticker := time.NewTicker(clockTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.renewLeaf(false); err != nil && !errors.Is(err, ErrNoCertificate) {
				klog.FromContext(ctx).Error(err, "Cannot renew the serving certificate")
			}
		}
	}
}

// Start is Run as a controller-runtime Runnable.
func (s *Serving) Start(ctx context.Context) error {
	s.Run(ctx)
	return nil
}

// NeedLeaderElection says that every replica runs its own.
func (s *Serving) NeedLeaderElection() bool { return false }

// followSecret takes over the authority of a Secret that was added or changed.
func (s *Serving) followSecret(ctx context.Context, obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	if err := s.adoptAuthority(secret); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot use the authority's Secret; the present certificate stays", "secret", s.secret)
	}
}

// adoptAuthority mints a certificate from the Secret's authority, unless the present one is from the same.
func (s *Serving) adoptAuthority(secret *corev1.Secret) error {
	state, err := ReadSecret(secret)
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", s.secret, err)
	}
	s.mu.Lock()
	fresh := holdsCert(s.signer, state.Signer.Cert)
	s.signer, s.roots = state.Signer, state.Pool()
	s.mu.Unlock()
	return s.renewLeaf(!fresh)
}

// Roots returns the authorities that verify what the authority has signed for others, or ErrNoCertificate until its Secret has
// been seen.
func (s *Serving) Roots(context.Context) (*x509.CertPool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots == nil {
		return nil, ErrNoCertificate
	}
	return s.roots, nil
}

// renewLeaf mints a new certificate when the present one is due, or when force is set, and notifies the listeners.
func (s *Serving) renewLeaf(force bool) error {
	listeners, err := s.mintLeaf(force)
	for _, l := range listeners {
		l.Enqueue()
	}
	return err
}

// mintLeaf returns the listeners to notify: none when nothing changed.
func (s *Serving) mintLeaf(force bool) ([]dynamiccertificates.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signer == nil {
		return nil, ErrNoCertificate
	}
	now := s.now()
	if !force && s.leaf != nil && !isDue(s.leaf.Cert, now) {
		return nil, nil
	}
	leaf, err := s.signer.Mint(now, s.life, s.names)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate: %w", err)
	}
	s.leaf, s.pair = leaf, &pair
	return s.listeners, nil
}

// GetCertificate is for tls.Config. It looks at the clock at every handshake, so a clock that jumps is noticed at once.
func (s *Serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := s.renewLeaf(false); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair, nil
}

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider: certificate and key as PEM, both nil before
// there is a certificate.
func (s *Serving) CurrentCertKeyContent() (cert, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaf == nil {
		return nil, nil
	}
	return s.leaf.CertPEM, s.leaf.KeyPEM
}

// AddListener implements dynamiccertificates.Notifier.
func (s *Serving) AddListener(listener dynamiccertificates.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
}

// Name names the certificate, also as a health check.
func (s *Serving) Name() string { return "serving-certificate" }

// Check is a health check: it fails while there is no certificate.
func (s *Serving) Check(*http.Request) error { return s.Ready() }

// Ready returns ErrNoCertificate while there is no certificate.
func (s *Serving) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaf == nil {
		return ErrNoCertificate
	}
	return nil
}

// watchSecret returns an informer of one Secret, so that rights on that Secret alone are enough.
func watchSecret(client kubernetes.Interface, key types.NamespacedName) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(key.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", key.Name).String()
		}))
	return factory.Core().V1().Secrets().Informer()
}
