package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/liveness"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/registry"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
)

// maxPasses is how many zones of a namespace on the same servers are worked on at once: mostly they wait for servers.
// maxNamespacePasses is how many zones of a namespace are.
const (
	maxPasses          = 16
	maxNamespacePasses = 2 * maxPasses
)

// updateTimeout bounds the exchange of one update. After a cut of the network TCP is slow to notice that it is over; another
// look at the zone and a new connection are faster.
const updateTimeout = 4 * time.Second

// Options are what the reconciler of zones works with.
type Options struct {
	// SystemNamespace is the namespace that Lockstep itself runs in.
	SystemNamespace string
	// Timeout is how long one of its instances may lack a zone before the zone's status asks for a person.
	Timeout time.Duration
	// Keys are the TSIG keys to sign with.
	Keys *keyrotation.Cache
	// Backends has the backends of providers that are no DNS servers.
	Backends *dnsprovider.Backends
	// Gate decides which addresses servers may have, and counts connections with those of DNSProviders.
	Gate *outbound.Gate
	// AskParents has zones above that are not declared here asked for the DS records of signed zones.
	AskParents bool
	// Observer asks servers what they serve, Sidecar changes the zones that they have.
	Observer *observe.Observer
	Sidecar  *bindcar.Client
	// Guard has a pass happen only while no other process may change servers.
	Guard func(reconcile.Reconciler) reconcile.Reconciler
}

// Setup adds the reconciler of zones and the objects of their data. It runs when a zone, such an object, an instance or a
// pod changes in a way that matters to DNS; status that we write ourselves never starts it.
func Setup(mgr ctrl.Manager, o Options) error {
	zones := zonecache.New()
	zones.Fleet = func() (*membership.Fleet, error) {
		return inventory.Read(context.Background(), mgr.GetClient(), o.SystemNamespace)
	}
	counts := statuswriter.NewMetrics(metrics.Registry)
	counts.Waiting = zones.OldestChange
	writer := statuswriter.NewWriter(statuswriter.Options{
		Client: mgr.GetClient(), Cache: mgr.GetCache(), Recorder: mgr.GetEventRecorder(apply.FieldOwner), Scheme: mgr.GetScheme(), Metrics: counts, Place: zones.Placement,
		ZoneTimeout: o.Timeout,
	})
	if err := mgr.Add(writer); err != nil {
		return err
	}
	tracker := unreachable.NewTracker(o.Observer, zones.Enqueue)
	serials := &notify.Serials{}
	r := &reconciler{
		edges: edges{
			kube: mgr.GetClient(), zones: zones, dns: tracker, sendNotify: wire.Notify, sidecar: o.Sidecar,
			updates: rfc2136.New(rfc2136.Options{Timeout: updateTimeout}), keys: o.Keys, backends: o.Backends, serials: serials, now: time.Now,
			isTerminating: func(ctx context.Context, namespace string) (bool, error) {
				return inventory.IsTerminating(ctx, mgr.GetAPIReader(), namespace)
			},
		},
		systemNamespace: o.SystemNamespace, gate: o.Gate, writer: writer, metrics: counts,
		backoff:    workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval),
		recoveries: &recoveries{enqueue: zones.Enqueue},
	}
	if o.AskParents {
		r.edges.registry = registry.New(o.Gate)
	}
	listener := &notify.Listener{Client: mgr.GetClient(), Sidecar: o.Sidecar, DNS: tracker, Keys: o.Keys, Zones: zones, Serials: serials, SystemNamespace: o.SystemNamespace}
	if err := mgr.Add(listener); err != nil {
		return err
	}
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	watchdog := liveness.NewWatchdog(zones.Due, time.Now)
	if err := addWatchdog(mgr, metrics.Registry, watchdog); err != nil {
		return err
	}
	turns := r.turns(o.Guard(watchdog.Watch(r)))
	objects := zonecache.NewSource(zones, mgr.GetCache())
	objects.Updated = writer.CorrectStatus
	return ctrl.NewControllerManagedBy(mgr).
		Named("zone").
		WithOptions(controller.Options{MaxConcurrentReconciles: turns.Workers()}).
		WatchesRawSource(turns).
		WatchesRawSource(objects).
		Watches(&v1beta1.Bind9Instance{}, handler.EnqueueRequestsFromMapFunc(r.zonesOfInstance), instanceChanged()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.zonesOfPod), podChanged()).
		Watches(&v1beta1.Bind9GlobalCluster{}, r.zonesConcerned(namesCluster), specChanged).
		Watches(&v1beta1.ClusterBind9Provider{}, r.zonesConcerned(namesCluster), specChanged).
		Watches(&v1beta1.ZoneGrant{}, r.zonesConcerned(isCovered), specChanged).
		Watches(&v1beta1.DNSProvider{}, r.zonesConcerned(membership.RefersTo), providerChanged()).
		Complete(turns)
}

// addWatchdog has the health check and a metric say whether passes happen.
func addWatchdog(mgr ctrl.Manager, registry prometheus.Registerer, w *liveness.Watchdog) error {
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "lockstep", Name: "oldest_pass_seconds", Help: "How long the pass over a zone has run or been due that has for the longest; 0 if there is none.",
	}, func() float64 { return w.Oldest().Seconds() })
	return errors.Join(registry.Register(oldest), mgr.AddHealthzCheck("passes", w.Check))
}

// turns has passes take turns, so that zones on servers that do not answer hold up their own kind only.
func (r *reconciler) turns(passes reconcile.Reconciler) *inventory.Turns {
	return &inventory.Turns{
		Reconciler: passes, PerNamespace: maxNamespacePasses, PerServers: maxPasses, ServersOf: r.serversOf, IsUrgent: r.isKnown,
	}
}

// serversOf names what a zone says about its servers: zones that say the same are on the same ones.
func (r *reconciler) serversOf(req ctrl.Request) string {
	zone := r.zones.Members.Zone(req.NamespacedName)
	if zone == nil {
		return ""
	}
	return fmt.Sprint(zone.Spec.ClusterRef, "/", zone.Spec.ClusterProviderRef, "/", zone.Spec.Bind9InstancesFrom, "/", zone.Spec.ProviderRefs)
}

// isKnown reports whether there was a pass over a zone: then it has changed, and comes before those that are looked at
// because the controller has started.
func (r *reconciler) isKnown(req ctrl.Request) bool {
	_, known := r.states.Load(req.NamespacedName)
	return known
}

// instanceChanged passes what decides which zones an instance serves and where.
func instanceChanged() builder.Predicates {
	moved := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.Bind9Instance).Status, e.ObjectNew.(*v1beta1.Bind9Instance).Status
		return before.ServiceAddress != after.ServiceAddress || before.ServiceExposed != after.ServiceExposed ||
			before.MaxRecordsPerType != after.MaxRecordsPerType || !slices.Equal(before.ServiceAddresses, after.ServiceAddresses)
	}}
	return builder.WithPredicates(predicate.Or[client.Object](moved,
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
}

// podChanged passes what shows that a pod's named may have started, moved or gone, or that its Service leads to it now.
func podChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Status.PodIP != after.Status.PodIP || before.Status.Phase != after.Status.Phase ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			status.PodReady(before) != status.PodReady(after) ||
			// Named and the sidecar answer; whether the pod's zones are loaded is another question.
			status.PodHas(before, corev1.ContainersReady) != status.PodHas(after, corev1.ContainersReady) ||
			!maps.Equal(inventory.RunningContainers(before), inventory.RunningContainers(after))
	}})
}

func (r *reconciler) zonesOfPod(ctx context.Context, o client.Object) []reconcile.Request {
	if addr, err := netip.ParseAddr(o.(*corev1.Pod).Status.PodIP); err == nil {
		r.dns.Reset(observe.Peer{Addr: netip.AddrPortFrom(addr, serving.Port), Namespace: o.GetNamespace()})
	}
	instance := &v1beta1.Bind9Instance{}
	key := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[serving.LabelInstance]}
	if err := r.kube.Get(ctx, key, instance); err != nil {
		return nil
	}
	return r.zonesOfInstance(ctx, instance)
}

// zonesOfInstance returns the zones that an instance serves, and those whose status says that it did.
func (r *reconciler) zonesOfInstance(ctx context.Context, o client.Object) []reconcile.Request {
	var requests []reconcile.Request
	instance := o.(*v1beta1.Bind9Instance)
	all, err := inventory.Read(ctx, r.kube, r.systemNamespace)
	if err != nil {
		return nil
	}
	for _, zone := range r.zones.Members.Zones() {
		if all.Serves(instance, zone) || slices.ContainsFunc(zone.Status.Bind9Instances, func(i v1beta1.ZoneInstance) bool {
			return i.Namespace == instance.Namespace && i.Name == instance.Name
		}) {
			requests = append(requests, inventory.RequestFor(zone))
		}
	}
	return requests
}

// zonesConcerned returns the zones that an object concerns.
func (r *reconciler) zonesConcerned(isConcerned func(*v1beta1.DNSZone, metav1.Object) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) (requests []reconcile.Request) {
		for _, zone := range r.zones.Members.Zones() {
			if isConcerned(zone, o) {
				requests = append(requests, inventory.RequestFor(zone))
			}
		}
		return requests
	})
}

// namesCluster reports whether a zone names a cluster-scoped cluster.
func namesCluster(zone *v1beta1.DNSZone, o metav1.Object) bool {
	return zone.Spec.ClusterRef == o.GetName() || zone.Spec.ClusterProviderRef == o.GetName()
}

// isCovered reports whether a grant covers the name of a zone.
func isCovered(zone *v1beta1.DNSZone, o metav1.Object) bool {
	return membership.CoversName(o.(*v1beta1.ZoneGrant), zone.Spec.ZoneName)
}

// providerChanged passes what decides where the servers of a provider are and who it is there, and that they answer or accept the keys now.
func providerChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.DNSProvider), e.ObjectNew.(*v1beta1.DNSProvider)
		return before.Status.Owner != after.Status.Owner || !equality.Semantic.DeepEqual(before.Status.Servers, after.Status.Servers)
	}}))
}
