package dnsprovider

import (
	"context"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// Grants let the accounts that sign read the Secrets that a provider names, and no others: for each account a Role with the names.
// They are the fleet manager's, which alone makes Roles, in namespaces that are enrolled.
type Grants struct {
	Client   client.Client
	Children *apply.Children
	// Controller and APIServer are accounts, by namespace and name.
	Controller, APIServer client.ObjectKey
}

// Setup adds the reconciler of the grants.
func (g *Grants) Setup(mgr ctrl.Manager) error {
	owners := handler.EnqueueRequestsFromMapFunc(providerOf)
	turns := &inventory.Turns{Reconciler: g, PerNamespace: 1}
	return ctrl.NewControllerManagedBy(mgr).
		Named("dnsprovider-grants").
		WithOptions(controller.Options{MaxConcurrentReconciles: turns.Workers()}).
		For(&v1beta1.DNSProvider{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(turns).
		WatchesMetadata(&rbacv1.Role{}, owners, builder.WithPredicates(inventory.ChangedByOthers())).
		WatchesMetadata(&rbacv1.RoleBinding{}, owners, builder.WithPredicates(inventory.ChangedByOthers())).
		Complete(turns)
}

func providerOf(_ context.Context, o client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != providerKind.Kind || owner.APIVersion != providerKind.GroupVersion().String() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}}
}

// Reconcile implements reconcile.Reconciler.
func (g *Grants) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	provider := &v1beta1.DNSProvider{}
	if err := g.Client.Get(ctx, req.NamespacedName, provider); err != nil || !provider.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if provider.Namespace == g.Controller.Namespace {
		return ctrl.Result{}, nil // Lockstep's own Secrets are nobody's keys.
	}
	ours, transfer := secretsOf(provider)
	for account, secrets := range map[client.ObjectKey][]string{g.Controller: ours, g.APIServer: transfer} {
		grant := grantOf(provider, account, secrets)
		if rule := endpointsRule(provider); rule != nil && account == g.Controller {
			grant[0].(*rbacv1ac.RoleApplyConfiguration).WithRules(rule)
		}
		if err := g.Children.Apply(ctx, grant...); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// endpointsRule lets the controller find the endpoints of a provider's Service: they have generated names.
func endpointsRule(p *v1beta1.DNSProvider) *rbacv1ac.PolicyRuleApplyConfiguration {
	if p.Spec.CoreDNS == nil || p.Spec.CoreDNS.Servers.Service == nil {
		return nil
	}
	return rbacv1ac.PolicyRule().WithAPIGroups(discoveryv1.GroupName).WithResources("endpointslices").WithVerbs("list")
}

// secretsOf are the names of the Secrets that the controller reads for a provider, and of those that the API server does.
func secretsOf(p *v1beta1.DNSProvider) (controller, apiServer []string) {
	update, transfer := tsigkey.ProviderSecrets(p)
	controller, apiServer = []string{update.Name, transfer.Name}, []string{transfer.Name}
	if c := p.Spec.CoreDNS; c != nil {
		for _, ref := range []*v1beta1.ProviderSecret{c.Etcd.TLSSecretRef, c.Etcd.CredentialsSecretRef} {
			if ref != nil {
				controller = append(controller, ref.Name)
			}
		}
	}
	return sortedNames(controller), sortedNames(apiServer)
}

func sortedNames(names []string) []string {
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// grantOf are the Role and the RoleBinding that let an account read Secrets. Without any, the Role has no rule: one without names would
// grant all.
func grantOf(p *v1beta1.DNSProvider, account client.ObjectKey, secrets []string) []apply.Configuration {
	name := "dnsprovider-" + p.Name + "-" + account.Name
	labels := map[string]string{named.LabelName: named.AppName, named.LabelManagedBy: named.Manager}
	owner := named.OwnerReference(providerKind.GroupVersion().String(), providerKind.Kind, p)
	role := rbacv1ac.Role(name, p.Namespace).WithLabels(labels).WithOwnerReferences(owner)
	if len(secrets) > 0 {
		role.WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithResourceNames(secrets...).WithVerbs("get"))
	}
	binding := rbacv1ac.RoleBinding(name, p.Namespace).WithLabels(labels).WithOwnerReferences(owner).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(name)).
		WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").WithNamespace(account.Namespace).WithName(account.Name))
	return []apply.Configuration{role, binding}
}
