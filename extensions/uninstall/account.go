package uninstall

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// tokenLife is how long a token of the account is asked for; it is renewed when half of that is over.
const tokenLife = 2 * time.Hour

// ensureAccount makes the account and its rights, or brings them back.
func (u *Uninstaller) ensureAccount(ctx context.Context, client kubernetes.Interface) error {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, u.namespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", u.namespace, err)
	}
	owner := metaac.OwnerReference().WithAPIVersion("v1").WithKind("Namespace").WithName(namespace.Name).WithUID(namespace.UID)
	force := metav1.ApplyOptions{FieldManager: apply.UninstallAccount, Force: true}
	labels := map[string]string{"app.kubernetes.io/part-of": "lockstep", "app.kubernetes.io/managed-by": "lockstep-controller"}

	account := coreac.ServiceAccount(apply.UninstallAccount, u.namespace).WithLabels(labels).WithAutomountServiceAccountToken(false)
	if _, err := client.CoreV1().ServiceAccounts(u.namespace).Apply(ctx, account, force); err != nil {
		return fmt.Errorf("keeping ServiceAccount %s: %w", apply.UninstallAccount, err)
	}
	role := rbacac.ClusterRole(apply.UninstallAccount).WithLabels(labels).WithOwnerReferences(owner).WithRules(u.policyRules()...)
	if _, err := client.RbacV1().ClusterRoles().Apply(ctx, role, force); err != nil {
		return fmt.Errorf("keeping ClusterRole %s: %w", apply.UninstallAccount, err)
	}
	binding := rbacac.ClusterRoleBinding(apply.UninstallAccount).WithLabels(labels).WithOwnerReferences(owner).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(apply.UninstallAccount)).
		WithSubjects(rbacac.Subject().WithKind("ServiceAccount").WithNamespace(u.namespace).WithName(apply.UninstallAccount))
	if _, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, binding, force); err != nil {
		return fmt.Errorf("keeping ClusterRoleBinding %s: %w", apply.UninstallAccount, err)
	}
	return nil
}

// policyRules are all that the account may do. The fleet manager must have every one of them itself, or it may not grant them.
func (u *Uninstaller) policyRules() []*rbacac.PolicyRuleApplyConfiguration {
	rules := []*rbacac.PolicyRuleApplyConfiguration{
		rbacac.PolicyRule().WithAPIGroups("apiextensions.k8s.io").WithResources("customresourcedefinitions").WithVerbs("get", "list", "watch"),
		rbacac.PolicyRule().WithAPIGroups("").WithResources("namespaces").WithResourceNames(u.namespace).WithVerbs("get"),
	}
	for _, resource := range u.resources {
		rules = append(rules, rbacac.PolicyRule().WithAPIGroups(resource.Group).WithResources(resource.Resource).WithVerbs("get", "list", "patch"))
	}
	return rules
}

// accountToken is the account's present token. It is safe for concurrent use.
type accountToken struct {
	mu    sync.Mutex
	value string
}

// renewToken asks for a new token.
func (t *accountToken) renewToken(ctx context.Context, client kubernetes.Interface, namespace string) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife / time.Second))}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, apply.UninstallAccount, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token of ServiceAccount %s: %w", apply.UninstallAccount, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.value = answer.Status.Token
	return nil
}

// restConfig returns the fleet manager's configuration with the account's token in place of its own.
func (t *accountToken) restConfig(config *rest.Config) *rest.Config {
	config = rest.AnonymousClientConfig(config)
	config.QPS = -1 // an uninstallation is one burst
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return tokenTransport{t, next} })
	return config
}

// tokenTransport adds the token to each request.
type tokenTransport struct {
	token *accountToken
	next  http.RoundTripper
}

func (b tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	b.token.mu.Lock()
	value := b.token.value
	b.token.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+value)
	return b.next.RoundTrip(r)
}
