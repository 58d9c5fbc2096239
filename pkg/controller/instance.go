package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// instanceKind is the kind that this reconciler is for.
var instanceKind = v1beta1.GroupVersion.WithKind("Bind9Instance")

// tokenReviewBinding lets the sidecars of all namespaces check tokens.
const tokenReviewBinding = "lockstep-bindcar"

// instanceReconciler makes what an instance runs as, lets its pods into service once they serve every zone they should,
// and tells how they are. It puts no zone on a pod, but takes off those that no DNSZone assigns to the instance.
type instanceReconciler struct {
	client  client.Client
	deps    Deps
	applier *applier
	keys    *keyring
	events  events.EventRecorder
	now     func() time.Time

	gates        gates
	pace         pace
	rollout      rollout
	authority    *authority
	certificates certificates
	configMaps   configMaps

	// binding is held from looking at which accounts there are until they are bound, so that an older look never comes last.
	binding sync.Mutex

	mu sync.Mutex
	// noted are the generations whose ignored fields were told.
	noted map[string]int64
	// departures are the zones that wait to be taken off pods, since when.
	departures map[departure]time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r *instanceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	instance := &v1beta1.Bind9Instance{}
	if err := r.client.Get(ctx, req.NamespacedName, instance); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil || !instance.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, errors.Join(r.bindAccounts(ctx), r.sayDeleting(ctx, instance))
	}
	p := &instancePass{instanceReconciler: r, instance: instance, facts: status.InstanceFacts{
		Generation: instance.Generation, Address: instance.Status.ServiceAddress, Cluster: instance.Status.ClusterRef, Problem: noProblem(),
		Timeout: r.deps.Timeouts.Instance,
	}}
	if err := p.run(ctx); namespaceTerminates(err) {
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reconciling instance %s: %w", req, err)
	}
	return p.report(ctx)
}

// namespaceTerminates tells that nothing can be made in a namespace any more, because it is being deleted.
func namespaceTerminates(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// instancePass is one pass over one instance.
type instancePass struct {
	*instanceReconciler
	instance *v1beta1.Bind9Instance
	workload named.Workload
	facts    status.InstanceFacts
	// leaving says that a pod still has a zone that is to go.
	leaving atomic.Bool
	// again is when to look again, 0 for not before an event.
	again time.Duration
}

// lookAgain has the instance looked at again after that time, or sooner.
func (p *instancePass) lookAgain(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

func (p *instancePass) run(ctx context.Context) error {
	owner, err := p.findCluster(ctx)
	if err != nil || !p.facts.Problem.Holds() {
		return err
	}
	err = p.makeWorkload(ctx, owner)
	switch {
	case errors.Is(err, named.ErrConfig), errors.Is(err, named.ErrKey), apierrors.IsInvalid(err):
		p.facts.Problem, p.facts.Terminal = status.No(status.ConfigurationInvalid, err.Error()), true
		if errors.Is(err, named.ErrKey) {
			p.lookAgain(problemPause) // No event tells of a Secret that has been repaired.
		}
	case apierrors.IsNotFound(err):
		p.facts.Problem, p.facts.Timeout = status.No(status.NotReady, err.Error()), p.deps.Timeouts.of(err)
		p.lookAgain(time.Second)
	case err != nil:
		return err
	}
	return p.lookAtPods(ctx)
}

// findCluster reads the instance's cluster. Without a clusterRef the instance is its own: the result's Object is nil.
func (p *instancePass) findCluster(ctx context.Context) (cluster, error) {
	name := p.instance.Spec.ClusterRef
	if name == "" {
		p.facts.Cluster = nil
		return cluster{}, nil
	}
	for _, candidate := range membership.ClusterCandidates(p.instance.Namespace, name) {
		if err := p.client.Get(ctx, candidate.Key, candidate.Object); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return cluster{}, err
		}
		if c := asCluster(candidate.Object, p.deps.Namespace); c.namespace == p.instance.Namespace {
			p.facts.Cluster = &v1beta1.ClusterReference{APIVersion: c.kind.GroupVersion().String(), Kind: c.kind.Kind, Name: name, Namespace: c.GetNamespace()}
			return c, nil
		}
	}
	p.facts.Problem = status.No(status.NotReady, fmt.Sprintf("no Bind9Cluster %s is in namespace %s", name, p.instance.Namespace))
	return cluster{}, nil
}

// makeWorkload applies everything that the instance consists of.
func (p *instancePass) makeWorkload(ctx context.Context, owner cluster) error {
	p.workload = named.Workload{
		Instance:               p.instance,
		Images:                 named.Images{Bind9: p.deps.Bind9Image, Bindcar: p.deps.BindcarImage},
		AllowedServiceAccounts: []string{p.deps.Namespace + "/" + p.deps.ControllerAccount},
		NoticeReaders:          []string{p.deps.Namespace + "/" + p.deps.APIServerAccount},
	}
	if owner.Object != nil {
		p.workload.Cluster = *owner.spec
	}
	if err := p.findKeys(ctx, owner); err != nil {
		return err
	}
	p.noteIgnored()
	if err := p.applier.applyUncached(ctx, p.workload.ServiceAccount()); err != nil {
		return err
	}
	if err := p.bindAccounts(ctx); err != nil {
		return err
	}
	configMap, err := p.workload.ConfigMap()
	if err != nil {
		return err
	}
	if err := p.applier.applyUncached(ctx, configMap); err != nil {
		return err
	}
	if err := p.applyService(ctx); err != nil {
		return err
	}
	if err := p.ensureCertificate(ctx); err != nil {
		return err
	}
	if err := p.applier.applyUncached(ctx, p.workload.DisruptionBudget(owner.reference())); err != nil {
		return err
	}
	if err := p.readReplacements(ctx); err != nil {
		return err
	}
	return p.applyStatefulSet(ctx)
}

// noteIgnored tells, once for each generation, which fields have no effect.
func (p *instancePass) noteIgnored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := string(p.instance.UID)
	if p.noted == nil {
		p.noted = map[string]int64{}
	}
	ignored := p.workload.Ignored()
	if len(ignored) == 0 || p.noted[key] == p.instance.Generation {
		return
	}
	p.noted[key] = p.instance.Generation
	p.events.Eventf(p.instance, nil, corev1.EventTypeWarning, "FieldsIgnored", "Reconcile", "%s", strings.Join(ignored, "; "))
}

func (p *instancePass) applyService(ctx context.Context) error {
	service, err := p.workload.Service()
	if err != nil {
		return err
	}
	digest, err := digestOf(service)
	if err != nil {
		return err
	}
	service.WithAnnotations(map[string]string{appliedAnnotation: digest})
	var cached corev1.Service
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(p.instance), &cached); client.IgnoreNotFound(err) != nil {
		return err
	}
	if ip := cached.Spec.ClusterIP; ip != corev1.ClusterIPNone {
		p.facts.Address = ip
	}
	return p.applier.apply(ctx, service, digest, &cached)
}

func (p *instancePass) applyStatefulSet(ctx context.Context) error {
	set, err := p.workload.StatefulSet()
	if err != nil {
		return err
	}
	digest, err := digestOf(set)
	if err != nil {
		return err
	}
	set.WithAnnotations(map[string]string{appliedAnnotation: digest})
	var cached appsv1.StatefulSet
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(p.instance), &cached); client.IgnoreNotFound(err) != nil {
		return err
	}
	if cached.UID != "" && cached.Annotations[appliedAnnotation] != digest {
		turn, err := p.takeTurn(ctx, &cached)
		if err != nil {
			return err
		}
		if !turn {
			p.lookAgain(rolloutPause)
			return nil
		}
	}
	return p.applier.apply(ctx, set, digest, &cached)
}

// bindAccounts lets the sidecars of all instances check tokens, and those of no other.
func (r *instanceReconciler) bindAccounts(ctx context.Context) error {
	r.binding.Lock()
	defer r.binding.Unlock()
	instances, err := listInstances(ctx, r.client)
	if err != nil {
		return err
	}
	return r.applier.applyUncached(ctx, tokenReviewers(instances))
}

// tokenReviewers is the binding for the accounts of the instances, in a stable order.
func tokenReviewers(instances []*v1beta1.Bind9Instance) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	instances = slices.SortedFunc(slices.Values(instances), func(a, b *v1beta1.Bind9Instance) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	binding := rbacv1ac.ClusterRoleBinding(tokenReviewBinding).
		WithLabels(map[string]string{named.LabelManagedBy: named.Manager}).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(tokenReviewBinding))
	for _, i := range instances {
		binding.WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").WithNamespace(i.Namespace).WithName(named.ServiceAccountName(i.Name)))
	}
	return binding
}

// zones are those assigned to the instance, by name: live ones in order, and the names of all, those that are on their
// way out included.
func (p *instancePass) zones(ctx context.Context) (live []*v1beta1.DNSZone, names map[string]bool, err error) {
	var list v1beta1.DNSZoneList
	if err := p.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	names = map[string]bool{}
	for _, zone := range pointers(list.Items) {
		if !membership.Serves(p.instance, zone) {
			continue
		}
		names[source.DNSName(zone)] = true
		if zone.DeletionTimestamp.IsZero() {
			live = append(live, zone)
		}
	}
	slices.SortFunc(live, func(a, b *v1beta1.DNSZone) int {
		return strings.Compare(source.DNSName(a)+"\x00"+a.Namespace+"/"+a.Name, source.DNSName(b)+"\x00"+b.Namespace+"/"+b.Name)
	})
	return live, names, nil
}
