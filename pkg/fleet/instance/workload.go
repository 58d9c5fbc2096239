package instance

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// workloads applies everything that instances consist of.
type workloads struct {
	Options
	client      client.Client
	transitions *apply.Transitions
	rollout     rollout
	// configMaps has the ConfigMaps of users that were read lately, certificates the bundles with which the certificates of
	// instances, by UID, were found valid.
	configMaps, certificates *cache.Expiring

	// warned maps instances to the generation whose ignored fields were reported.
	warned sync.Map
}

func newWorkloads(c client.Client, transitions *apply.Transitions, o Options) *workloads {
	return &workloads{
		Options: o, client: c, transitions: transitions, rollout: newRollout(c, o.SystemNamespace), configMaps: cache.NewExpiring(), certificates: cache.NewExpiring(),
	}
}

// workloadResult is what a status reports of a workload. A part that was not reached is empty.
type workloadResult struct {
	keyRotation *v1beta1.RNDCKeyRotationStatus
	// service is the Service as the cache has it, nil when nothing is known of its addresses.
	service *corev1.Service
	// imageAdvice is what to do if the image of named cannot be pulled.
	imageAdvice string
	// maxRecords is how many records of one name and type all pods take.
	maxRecords int32
	requeue    time.Duration
}

// ensure applies everything that an instance consists of. The result is filled in as far as it came.
func (w *workloads) ensure(ctx context.Context, instance *v1beta1.Bind9Instance, cluster inventory.Cluster) (result workloadResult, err error) {
	workload := &named.Workload{
		Instance: instance,
		Images:   w.Images,
	}
	if cluster.Object != nil {
		workload.Cluster = *cluster.Spec
	}
	result.imageAdvice = workload.ImageAdvice()
	if err := inventory.CheckReadable(instance, cluster.Object); err != nil {
		return result, err
	}
	if metav1.GetControllerOf(instance) == nil { // One that a cluster made has it from the beginning.
		if err := apply.OutliveChildren(ctx, w.client, inventory.InstanceKind, instance); err != nil {
			return result, err
		}
	}
	// It comes first: nobody can reach sidecars any more whose certificate ends while something else is wrong with the instance.
	if err := w.ensureCertificate(ctx, workload); err != nil {
		return result, err
	}
	if err := w.ensureKeys(ctx, instance, cluster, &result); err != nil {
		return result, err
	}
	w.warnOfIgnoredFields(workload)
	if err := w.Children.Apply(ctx, workload.ServiceAccount()); err != nil {
		return result, err
	}
	configMap, err := workload.ConfigMap()
	if err != nil {
		return result, err
	}
	if err := w.Children.Apply(ctx, configMap); err != nil {
		return result, err
	}
	if err := w.applyService(ctx, workload, &result); err != nil {
		return result, err
	}
	if err := w.Children.Apply(ctx, workload.DisruptionBudget(cluster.OwnerReference())); err != nil {
		return result, err
	}
	if len(workload.ReplacedFiles()) > 0 {
		if err := w.readReplacements(ctx, workload); err != nil {
			return result, err
		}
	}
	if err := w.applyStatefulSet(ctx, workload, &result); err != nil {
		return result, err
	}
	return result, w.ensureSigningKeys(ctx, workload)
}

// ensureKeys keeps the keys of an instance without a cluster, makes sure that there are keys, and finds what the status
// reports of them.
func (w *workloads) ensureKeys(ctx context.Context, instance *v1beta1.Bind9Instance, cluster inventory.Cluster, result *workloadResult) (err error) {
	settings := named.StandaloneKeys(&instance.Spec)
	if cluster.Object != nil {
		settings = named.ClusterKeys(cluster.Spec)
	} else if result.requeue, _, err = w.Keys.Ensure(ctx, keyrotation.OwnerOf(instance, cluster), time.Now()); err != nil {
		return err
	}
	if _, err := w.Keys.Cache.TransferKey(ctx, instance); err != nil {
		return err
	}
	if _, err := w.Keys.Cache.UpdateKey(ctx, instance); err != nil {
		return err
	}
	secret, own := keyrotation.TransferKeySecret(instance), true
	if instance.Spec.Role.Normalize() == v1beta1.RolePrimary {
		secret, own = keyrotation.UpdateKeySecret(instance), settings.Ref == nil
	}
	result.keyRotation = w.Keys.Cache.LastRing(secret).Rotation(settings.Rotation, own)
	return nil
}

// warnOfIgnoredFields warns once for each generation of the fields that have no effect.
func (w *workloads) warnOfIgnoredFields(workload *named.Workload) {
	ignored, instance := workload.Ignored(), workload.Instance
	if len(ignored) == 0 {
		return
	}
	if last, _ := w.warned.Swap(instance.UID, instance.Generation); last != instance.Generation {
		w.transitions.Emit(instance, corev1.EventTypeWarning, apply.FieldsIgnored, strings.Join(ignored, "; "))
	}
}

// applyService applies the instance's Services, and finds the one that clients use as far as the cache knows it.
func (w *workloads) applyService(ctx context.Context, workload *named.Workload, result *workloadResult) error {
	var cached corev1.Service
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(workload.Instance), &cached); client.IgnoreNotFound(err) != nil {
		return err
	}
	service, sidecar, err := workload.Services(cached.Spec)
	if err != nil {
		return err
	}
	if err := w.applySidecarService(ctx, sidecar); err != nil {
		return err
	}
	digest, err := apply.StampDigest(service)
	if err != nil {
		return err
	}
	if cached.UID == "" {
		former, err := w.formerService(ctx, workload.Instance)
		if err != nil {
			return err
		}
		if former != nil {
			result.service, result.requeue = former, inventory.Sooner(result.requeue, handoverInterval)
			return nil
		}
		if known := workload.Instance.Status.ServiceAddress; known != "" && service.Spec.ClusterIP == nil {
			return w.restoreService(ctx, service, digest, known)
		}
	}
	result.service = &cached
	return w.Children.ApplyCached(ctx, service, digest, &cached)
}

// applySidecarService applies the Service of an instance's sidecars alone, if it is to have one. One that is not needed any more goes with
// the instance: it leads to nothing that the instance's own Service does not lead to then.
func (w *workloads) applySidecarService(ctx context.Context, service *corev1ac.ServiceApplyConfiguration) error {
	if service == nil {
		return nil
	}
	digest, err := apply.StampDigest(service)
	if err != nil {
		return err
	}
	var cached corev1.Service
	key := client.ObjectKey{Namespace: *service.Namespace, Name: *service.Name}
	if err := w.client.Get(ctx, key, &cached); client.IgnoreNotFound(err) != nil {
		return err
	}
	return w.Children.ApplyCached(ctx, service, digest, &cached)
}

// addressesOf returns the address of a Service within the Kubernetes cluster, the last one for a headless one, and the IP addresses
// that clients use: from outside of the cluster if the Service is exposed to them.
func addressesOf(service *corev1.Service, last string) (address string, addresses []string, exposed bool) {
	spec := service.Spec
	if address = spec.ClusterIP; address == corev1.ClusterIPNone {
		address = last
	}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		addresses = append(addresses, ingress.IP)
	}
	addresses = append(addresses, spec.ExternalIPs...)
	if exposed = named.Exposed(spec); !exposed {
		addresses = slices.Clone(spec.ClusterIPs)
	}
	addresses = slices.DeleteFunc(addresses, func(s string) bool { return net.ParseIP(s) == nil })
	slices.Sort(addresses)
	return address, slices.Compact(addresses), exposed
}

// nodePortsOf returns the ports of the nodes at which a Service takes DNS queries; nil if there are none.
func nodePortsOf(service *corev1.Service) *v1beta1.NodePorts {
	var ports v1beta1.NodePorts
	for _, p := range service.Spec.Ports {
		switch {
		case p.Port != serving.ServicePort:
		case p.Protocol == corev1.ProtocolTCP:
			ports.TCP = p.NodePort
		default:
			ports.UDP = p.NodePort
		}
	}
	if ports == (v1beta1.NodePorts{}) {
		return nil
	}
	return &ports
}

// handoverInterval is how soon to check again whether a Service that Bindy made can be taken over.
const handoverInterval = time.Second

// formerService is a Service of Bindy's, nil if there is none or clients do not need the pods any more that it selects: until one of the
// instance's own is ready, the Service stays as it is. The cache has none but our own Services.
func (w *workloads) formerService(ctx context.Context, instance *v1beta1.Bind9Instance) (*corev1.Service, error) {
	live := &unstructured.Unstructured{} // Objects without a type are read from kube-apiserver.
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err := w.client.Get(ctx, client.ObjectKeyFromObject(instance), live)
	if err != nil || live.GetLabels()[named.LabelManagedBy] == named.Manager {
		return nil, client.IgnoreNotFound(err)
	}
	pods, err := inventory.PodsByName(ctx, w.client, instance.Namespace, instance.Name)
	if err != nil || slices.ContainsFunc(slices.Collect(maps.Values(pods)), status.PodReady) {
		return nil, err
	}
	service := &corev1.Service{}
	return service, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, service)
}

// addressTimeout is how long a deleted Service's address may take to be free: Kubernetes frees it after the Service has gone.
const addressTimeout = 2 * time.Second

// restoreService makes a Service again that somebody has deleted, with the address that it had unless that is taken: clients have it, and
// named waits ten seconds for a primary that has gone from an address.
func (w *workloads) restoreService(ctx context.Context, service *corev1ac.ServiceApplyConfiguration, digest, former string) error {
	service.Spec.WithClusterIP(former)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, addressTimeout, true, func(ctx context.Context) (bool, error) {
		err := w.Children.ApplyCached(ctx, service, digest, &corev1.Service{})
		if apierrors.IsInvalid(err) {
			return false, nil
		}
		return true, err
	})
	if wait.Interrupted(err) {
		service.Spec.ClusterIP = nil
		err = w.Children.ApplyCached(ctx, service, digest, &corev1.Service{})
	}
	return err
}

// applyStatefulSet changes what has to be changed, unless it is a change of running pods that waits for the instance's turn.
func (w *workloads) applyStatefulSet(ctx context.Context, workload *named.Workload, result *workloadResult) error {
	set, err := workload.StatefulSet()
	if err != nil {
		return err
	}
	digest, err := apply.StampDigest(set)
	if err != nil {
		return err
	}
	var cached appsv1.StatefulSet
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(workload.Instance), &cached); client.IgnoreNotFound(err) != nil {
		return err
	}
	isApplied := apply.IsApplied(&cached, digest)
	result.maxRecords = recordsTaken(workload, &cached, isApplied)
	if cached.UID != "" && !isApplied {
		turn, err := w.rollout.takeTurn(ctx, workload.Instance, &cached)
		if err == nil && !turn {
			result.requeue = inventory.Sooner(result.requeue, rolloutInterval)
		}
		if err != nil || !turn {
			return err
		}
	}
	return w.Children.ApplyCached(ctx, set, digest, &cached)
}

// recordsTaken is how many records of one name and type all pods of an instance take. Until the last one is replaced, some run with what was
// configured before.
func recordsTaken(workload *named.Workload, set *appsv1.StatefulSet, isApplied bool) int32 {
	most := workload.MaxRecordsPerType()
	if set.UID == "" || isApplied && rolloutStateOf(set).healthy {
		return most
	}
	return min(most, cmp.Or(workload.Instance.Status.MaxRecordsPerType, v1beta1.DefaultMaxRecordsPerType))
}
