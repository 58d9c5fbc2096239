// Package dnsprovider finds out whether the servers of DNSProviders answer and accept their keys, and reports it in their status.
// It changes nothing on any server. The fleet manager's part lets those who sign read the providers' keys.
package dnsprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// How often a provider is checked without an event, and one that is not ready.
const (
	readyInterval   = time.Minute
	problemInterval = 10 * time.Second
	// storeInterval is how often etcd and CoreDNS are checked, and the endpoints of a Service: a new replica is not asked before.
	storeInterval = 5 * time.Second
)

// maxProbes is how many providers of a namespace are checked at a time: mostly they wait for servers.
const maxProbes = 4

// maxConnections is how many connections with the DNS servers of a provider there are at a time: as many as the questions to two of
// them that an observe.Observer has under way.
const maxConnections = 64

// AccountOf is charged with the connections to a provider's DNS servers, whoever needs them.
func AccountOf(g *outbound.Gate, namespace, name string) *outbound.Account {
	return g.Account(namespace, "DNSProvider "+name, maxConnections)
}

var providerKind = v1beta1.GroupVersion.WithKind("DNSProvider")

// reconciler checks providers.
type reconciler struct {
	client   client.Client
	keys     *keyrotation.Cache
	stores   *Backends
	resolver Resolver
	now      func() time.Time
	// transitions makes Events; nil makes none.
	transitions *apply.Transitions
	// systemNamespace is the namespace that Lockstep runs in.
	systemNamespace string
	// cluster returns what names this Kubernetes cluster among others.
	cluster func(context.Context) (string, error)
}

// Setup adds the reconciler of the status of providers. It runs when a provider changes, when a zone that names it does, and now
// and then. systemNamespace is the namespace that Lockstep runs in.
func Setup(mgr ctrl.Manager, keys *keyrotation.Cache, stores *Backends, systemNamespace string) error {
	r := &reconciler{client: mgr.GetClient(), keys: keys, stores: stores, resolver: Resolver{Gate: stores.Gate}, now: time.Now, systemNamespace: systemNamespace, cluster: clusterID(mgr.GetAPIReader()),
		transitions: apply.NewTransitions(mgr.GetEventRecorder(apply.FieldOwner), mgr.GetScheme())}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	turns := &inventory.Turns{Reconciler: r, PerNamespace: maxProbes}
	return ctrl.NewControllerManagedBy(mgr).
		Named("dnsprovider").
		WithOptions(controller.Options{MaxConcurrentReconciles: turns.Workers()}).
		WatchesRawSource(turns).
		For(&v1beta1.DNSProvider{}, changed).
		Watches(&v1beta1.DNSProvider{}, apply.NewCorrections(mgr.GetClient()).Handler()).
		Watches(&v1beta1.DNSZone{}, handler.EnqueueRequestsFromMapFunc(providersOfZone), changed).
		Complete(turns)
}

func providersOfZone(_ context.Context, o client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range o.(*v1beta1.DNSZone).Spec.ProviderRefs {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	provider := &v1beta1.DNSProvider{}
	if err := r.client.Get(ctx, req.NamespacedName, provider); err != nil || !provider.DeletionTimestamp.IsZero() {
		r.stores.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	zones, err := r.zonesOf(ctx, provider)
	if err != nil {
		return ctrl.Result{}, err
	}
	owner, err := r.ownerOf(ctx, provider)
	if err != nil {
		return ctrl.Result{}, err
	}
	was := provider.Status
	provider.Status.Owner = owner
	facts := r.probe(outbound.WithAccount(ctx, AccountOf(r.stores.Gate, provider.Namespace, provider.Name)), provider, zones)
	facts.Owner = owner
	if provider.Spec.Secondaries != nil {
		if facts.LeftOut, err = r.leftOut(ctx, provider); err != nil {
			return ctrl.Result{}, err
		}
	}
	next := status.Provider(was, facts, r.now())
	if !equality.Semantic.DeepEqual(was, next) {
		if err := apply.Status(ctx, r.client, providerKind, provider, &next); err != nil {
			return ctrl.Result{}, err
		}
		r.transitions.Record(provider, apply.Summary{Conditions: was.Conditions}, apply.Summary{Conditions: next.Conditions})
	}
	interval := readyInterval
	switch {
	case provider.Spec.CoreDNS != nil:
		interval = storeInterval
	case !facts.IsReady():
		interval = problemInterval
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(interval, 0.1)}, nil
}

// ownerOf names the owner of a provider's values; empty if it has none.
func (r *reconciler) ownerOf(ctx context.Context, provider *v1beta1.DNSProvider) (string, error) {
	if owner := serving.OwnerOf(provider, ""); owner != "" || !serving.IsOwned(provider) {
		return owner, nil
	}
	cluster, err := r.cluster(ctx)
	return serving.OwnerOf(provider, cluster), err
}

// clusterID returns a function that returns the UID of the namespace kube-system, which it remembers: no two Kubernetes clusters have the same.
func clusterID(reader client.Reader) func(context.Context) (string, error) {
	var known atomic.Pointer[string]
	return func(ctx context.Context) (string, error) {
		if id := known.Load(); id != nil {
			return *id, nil
		}
		system := &corev1.Namespace{}
		if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
			return "", fmt.Errorf("reading the UID of namespace %s: %w", metav1.NamespaceSystem, err)
		}
		known.Store(new(string(system.UID)))
		return string(system.UID), nil
	}
}

// zonesOf are the zones that name a provider, by name.
func (r *reconciler) zonesOf(ctx context.Context, provider *v1beta1.DNSProvider) ([]*v1beta1.DNSZone, error) {
	all, err := inventory.ListZones(ctx, r.client, client.InNamespace(provider.Namespace))
	zones := slices.DeleteFunc(all, func(z *v1beta1.DNSZone) bool { return !membership.RefersTo(z, provider) })
	slices.SortFunc(zones, compareZones)
	return zones, err
}

func compareZones(a, b *v1beta1.DNSZone) int { return cmp.Compare(a.Name, b.Name) }

// probe finds out the state of a provider.
func (r *reconciler) probe(ctx context.Context, provider *v1beta1.DNSProvider, zones []*v1beta1.DNSZone) status.ProviderFacts {
	facts := status.ProviderFacts{Generation: provider.Generation, Type: typeOf(provider), Zones: len(zones), Unsupported: serving.ProviderProblem(provider)}
	if facts.Unsupported != "" {
		return facts
	}
	zone := "."
	if len(zones) > 0 {
		if name, err := declaration.ZoneName(zones[0].Spec.ZoneName); err == nil {
			zone = name
		}
	}
	provider = r.withAddresses(ctx, provider)
	if provider.Spec.CoreDNS != nil {
		r.probeStore(ctx, provider, zone, &facts)
		return facts
	}
	update, transfer := tsigkey.ProviderSecrets(provider)
	p := prober{zone: zone}
	for _, key := range []struct {
		secret client.ObjectKey
		to     **wire.Key
	}{{update, &p.update}, {transfer, &p.transfer}} {
		if key.secret.Name == "" {
			continue
		}
		var err error
		if *key.to, err = r.keys.Get(ctx, key.secret); err != nil {
			facts.KeyProblem = keyProblem(key.secret, err)
		}
	}
	if p.byAddress = serving.IsByAddress(provider); provider.Spec.Secondaries != nil && !p.byAddress && facts.KeyProblem == "" {
		if _, err := named.NewGuestKey(provider.Namespace, provider.Name, p.transfer); err != nil {
			facts.KeyProblem = keyProblem(transfer, err)
		}
	}
	facts.Servers = askAll(provider, func(s observe.Server) status.ProviderServerFacts { return p.ask(ctx, s, facts.KeyProblem == "") })
	if !facts.IsReady() { // Whoever corrects a Secret need not wait.
		r.keys.Invalidate(update, p.update)
		r.keys.Invalidate(transfer, p.transfer)
	}
	return facts
}

// askAll asks all servers of a provider.
func askAll(provider *v1beta1.DNSProvider, ask func(observe.Server) status.ProviderServerFacts) []status.ProviderServerFacts {
	servers := serving.ServersOf(provider)
	found := make([]status.ProviderServerFacts, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { found[i] = ask(s) })
	}
	wg.Wait()
	return found
}

func typeOf(provider *v1beta1.DNSProvider) string {
	switch {
	case provider.Spec.CoreDNS != nil:
		return "coreDNS"
	case provider.Spec.Secondaries != nil:
		return "secondaries"
	}
	return "rfc2136"
}

// secretProblem says what is wrong with a Secret that cannot be read, and which entries it needs.
func secretProblem(name, entries string, err error) string {
	if unreadable, ok := errors.AsType[*tsigkey.UnreadableError](tsigkey.Unreadable(name, err)); ok {
		return fmt.Sprintf("%v: create it with the entries %s; where namespaces are enrolled, ask an administrator to enroll this one", unreadable, entries)
	}
	return err.Error()
}

// keyProblem is secretProblem for the Secret of a TSIG key.
func keyProblem(secret client.ObjectKey, err error) string {
	return secretProblem(secret.Name, "name, algorithm and secret of the TSIG key", err)
}

// withAddresses is a provider with the addresses of its host names, or of the endpoints of its Service, in its status, as they are now.
func (r *reconciler) withAddresses(ctx context.Context, provider *v1beta1.DNSProvider) *v1beta1.DNSProvider {
	was := provider.Status.Servers
	provider = provider.DeepCopy()
	if provider.Spec.CoreDNS != nil && provider.Spec.CoreDNS.Servers.Service != nil {
		ctx, cancel := context.WithTimeout(ctx, wire.DefaultTimeout)
		defer cancel()
		provider.Status.Servers = r.endpointsOf(ctx, provider)
	} else {
		provider.Status.Servers = r.resolver.Resolve(ctx, provider, was)
	}
	return provider
}
