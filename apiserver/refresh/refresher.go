// Package refresh decides when servers are asked, and publishes what follows. For readers, Verdicts asks the servers that matter
// and evaluates the answers. For watchers, a tracker for each watched namespace polls servers, follows their notifications
// and the events of the caches, and evaluates only what these can have changed. No server is asked while nobody reads or
// watches.
//
// Both ways are one path: resolve the object (package desired), ask (package ask), evaluate by the newest answers (package evaluate), take
// another look when data is wrong, publish (package store).
package refresh

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// Options of a Refresher.
type Options struct {
	ask.Options
	// WatchInterval is how often the servers of watched zones are asked for their serial; one with a notification stream is
	// asked about few of its zones each time.
	WatchInterval time.Duration
	// Notifications opens notification streams, so that watchers see a change at once and idle servers are hardly asked.
	// Without it every server of a watched zone is asked at the interval.
	Notifications NotificationOpener
	// TrustAnchors are those by which zones are validated; the pointer changes with them. Nil if there are none.
	TrustAnchors func() *validate.Anchors
	// SignatureNotice is how long before a signature expires verdicts say so.
	SignatureNotice time.Duration
}

var noAnchors validate.Anchors

// Publisher makes verdicts visible; see package store.
type Publisher interface {
	Revision() uint64
	Publish(evaluatedFrom uint64, verdicts ...*syncv1.SyncStatus) (outdated []int)
	Delete(key desired.Key, o metav1.Object)
	Digest(*syncv1.SyncStatus) uint64
	IsPublished(key desired.Key, digest uint64) bool
}

// Refresher is safe for concurrent use.
type Refresher struct {
	options   Options
	index     *desired.Index
	answers   *evaluate.Answers
	evaluator *evaluate.Evaluator
	asker     *ask.Asker
	informers *informers.Informers
	publisher Publisher
	streams   notificationStreams
	trackers  trackers
	audits    *rate.Limiter
}

// New returns a Refresher that follows the caches. keys reads transfer keys.
func New(inf *informers.Informers, index *desired.Index, keys tsigkey.ReadFunc, publisher Publisher, options Options) (*Refresher, error) {
	answers := evaluate.NewAnswers()
	anchors := options.TrustAnchors
	if anchors == nil {
		anchors = func() *validate.Anchors { return &noAnchors }
	}
	var vantages []string
	for _, v := range options.Vantages {
		vantages = append(vantages, v.Name())
	}
	evaluator := evaluate.New(index, answers, validate.NewValidator(anchors, options.SignatureNotice), vantages...)
	r := &Refresher{
		options: options, index: index, answers: answers, evaluator: evaluator, asker: ask.New(index, answers, evaluator, keys, options.Options),
		informers: inf, publisher: publisher, audits: newAuditLimiter(),
		streams: notificationStreams{open: options.Notifications, streams: map[Peer]*notificationStream{}},
	}
	r.trackers = trackers{refresher: r, ctx: context.Background(), byNamespace: map[string]*tracker{}, interests: map[*Interest]struct{}{}}
	return r, r.followEvents()
}

// Run fills the caches, and serves watches until the context ends.
func (r *Refresher) Run(ctx context.Context) {
	r.trackers.start(ctx)
	r.informers.Run(ctx)
}

// followEvents feeds the events of the caches to the desired state, the store and the trackers.
func (r *Refresher) followEvents() error {
	for _, kind := range r.informers.TrackedKinds() {
		if err := r.informers.OnEvent(kind, func(o metav1.Object, deleted bool) { r.handleEvent(kind, o, deleted) }); err != nil {
			return err
		}
	}
	changed := func(metav1.Object, bool) { r.serversChanged() }
	return errors.Join(r.informers.OnEvent(informers.PodKind, changed), r.informers.OnEvent(informers.GrantKind, changed),
		r.informers.OnEvent(informers.DNSProviderKind, changed), r.informers.OnEvent(informers.NamespaceKind, r.namespaceChanged))
}

func (r *Refresher) handleEvent(kind string, o metav1.Object, deleted bool) {
	key := desired.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	concerned, everywhere := r.index.Apply(key)
	if deleted {
		r.publisher.Delete(key, o)
	}
	r.trackers.touchObjects(append(concerned, key)...)
	switch {
	case informers.DescribesServers(kind):
		r.serversChanged()
	case everywhere:
		r.trackers.serversChanged()
	}
}

func (r *Refresher) namespaceChanged(namespace metav1.Object, deleted bool) {
	r.trackers.touchObjects(r.index.ApplyNamespace(namespace, deleted)...)
}

func (r *Refresher) serversChanged() {
	r.index.ServersChanged()
	r.trackers.serversChanged()
}

// WaitForObject waits until what is evaluated next is not about an older version of the object than is in the Kubernetes
// cluster now. Errors are API errors.
func (r *Refresher) WaitForObject(ctx context.Context, key desired.Key) error {
	if err := r.informers.WaitForObject(ctx, key); err != nil {
		return err
	}
	r.applyNow(key) //nolint:contextcheck // servers are asked in the name of all readers, under a context of the API server
	return nil
}

// applyNow takes over what the caches hold of an object, before its event does.
func (r *Refresher) applyNow(key desired.Key) {
	concerned, everywhere := r.index.Apply(key)
	if len(concerned) > 0 {
		r.trackers.touchObjects(append(concerned, key)...)
	}
	if everywhere {
		r.trackers.serversChanged()
	}
}

// waitForKind is WaitForObject for all objects of a kind in a namespace, unless there are too many.
func (r *Refresher) waitForKind(ctx context.Context, of kindIn) {
	keys, err := r.informers.WaitForKind(ctx, of.kind, of.namespace)
	for _, key := range keys {
		if err == nil {
			r.applyNow(key) //nolint:contextcheck // as above
		}
	}
}
