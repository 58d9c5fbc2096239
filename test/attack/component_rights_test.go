package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

const system = "lockstep-system"

// accountClient returns a client with the rights of a ServiceAccount, as somebody has who took over its pod.
func accountClient(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(kube.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + name}
	c, err := client.New(config, client.Options{Scheme: kube.Client(t).Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// right is what an account may or may not do: "verb resource.group/name namespace", of which the name is optional and the
// namespace - when there is none.
type right string

func (r right) attributes(t *testing.T) *authorizationv1.ResourceAttributes {
	t.Helper()
	fields := strings.Fields(string(r))
	if len(fields) != 3 {
		t.Fatalf("%q is no right", r)
	}
	a := &authorizationv1.ResourceAttributes{Verb: fields[0], Namespace: strings.Trim(fields[2], "-")}
	resource, subresource, _ := strings.Cut(fields[1], ":")
	a.Subresource = subresource
	resource, a.Name, _ = strings.Cut(resource, "/")
	a.Resource, a.Group, _ = strings.Cut(resource, ".")
	return a
}

// isAllowed asks kube-apiserver whether the account of a client has a right.
func isAllowed(t *testing.T, c client.Client, r right) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.attributes(t)}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return review.Status.Allowed
}

// createSecret creates a Secret of a tenant's, as the tenant.
func createSecret(n *tenant, name string) {
	n.Helper()
	n.kubectl("create", "secret", "generic", name, "--from-literal=password=secret")
}

// Whoever takes over a component has its rights. They end where its work does.
func TestAttack11Rights(t *testing.T) {
	kube.Isolated(t)
	n := newTenant(t, "rights")
	n.apply(bind9Cluster("dns") + dnsZone("main", "rights.example", "clusterRef: dns") + aRecord("www", "main", "www", "192.0.2.1"))
	waitServed(t, n.client, n.namespace, "www.rights.example", dns.TypeA, "192.0.2.1")
	createSecret(n, "password")
	here := right(n.namespace)
	outside := []right{
		"impersonate users -", "escalate clusterroles.rbac.authorization.k8s.io -", "bind clusterroles.rbac.authorization.k8s.io/cluster-admin -",
		"create clusterrolebindings.rbac.authorization.k8s.io/mine -", "create pods:exec kube-system", "create serviceaccounts/default:token kube-system",
		"list secrets kube-system", "list secrets " + here, "delete namespaces/" + here + " -",
		"patch mutatingwebhookconfigurations.admissionregistration.k8s.io/other -", "create nodes:proxy -",
	}
	programs := slices.Concat(outside, []right{
		"get secrets/password " + here, "get secrets/other " + system, "get secrets/lockstep-ca " + system,
		"create secrets " + here, "create configmaps " + here,
		"create pods " + here, "create pods " + system, "create statefulsets.apps " + here, "create services " + here,
		"create serviceaccounts " + here, "create roles.rbac.authorization.k8s.io " + here,
		"create rolebindings.rbac.authorization.k8s.io " + here, "patch pods:status " + here,
		"create bind9instances.bindy.firestoned.io " + here, "delete dnszones.bindy.firestoned.io " + here,
		"patch apiservices.apiregistration.k8s.io/v1alpha1.sync.bindy.firestoned.io -",
		"patch validatingwebhookconfigurations.admissionregistration.k8s.io/lockstep-webhook -", "create serviceaccounts/lockstep-uninstall:token " + system,
	})
	readers := slices.Concat(programs, []right{
		"get secrets/dns-update-keyring " + here, "patch dnszones.bindy.firestoned.io " + here, "patch arecords.bindy.firestoned.io:status " + here,
	})
	const apiServerKey, webhookKey right = "get secrets/lockstep-apiserver-tls " + system, "get secrets/lockstep-webhook-tls " + system
	transferKey := "get secrets/dns-transfer-keyring " + here
	for name, c := range map[string]struct {
		namespace, account string
		may, mayNot        []right
	}{
		"controller": {
			system, "lockstep-controller", []right{"get secrets/dns-update-keyring " + here, transferKey, "patch dnszones.bindy.firestoned.io " + here},
			slices.Concat(programs, []right{apiServerKey, webhookKey}),
		},
		"API server": {system, "lockstep-apiserver", []right{transferKey, apiServerKey}, slices.Concat(readers, []right{webhookKey})},
		"webhook":    {system, "lockstep-webhook", []right{webhookKey}, slices.Concat(readers, []right{transferKey, apiServerKey})},
		"sidecar": {
			n.namespace, named.ServiceAccountName("dns-primary-0"), nil,
			slices.Concat(readers, []right{transferKey, apiServerKey, webhookKey, "get dnszones.bindy.firestoned.io " + here}),
		},
		"fleet manager": {
			system, "lockstep-fleet", []right{"create statefulsets.apps " + here, "get secrets/dns-update-keyring " + here, "get secrets/lockstep-ca " + system},
			slices.Concat(outside, []right{"create pods " + here, "delete secrets " + here, "create clusterroles.rbac.authorization.k8s.io/mine -"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			as := accountClient(t, c.namespace, c.account)
			for _, r := range c.may {
				if !isAllowed(t, as, r) {
					t.Errorf("may not %s: the other refusals prove nothing", r)
				}
			}
			for _, r := range c.mayNot {
				if isAllowed(t, as, r) {
					t.Errorf("may %s", r)
				}
			}
			if err := as.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
				t.Errorf("lists Secrets: %v", err)
			}
			err := as.Get(t.Context(), client.ObjectKey{Namespace: n.namespace, Name: "password"}, &corev1.Secret{})
			if name != "fleet manager" && !apierrors.IsForbidden(err) {
				t.Errorf("reads a Secret: %v", err)
			}
		})
	}
}

// With the enrolled overlay, not even the fleet manager's rights reach a namespace that nobody has enrolled; a cluster there says
// so, and works after an administrator has run the command that it shows.
func TestAttack11Enrolled(t *testing.T) {
	kube.Disruptive(t, nil)
	defer kube.Reinstall(t)
	kube.Kubectl(t, "", "apply", "-k", "test/attack/testdata/enrolled")
	kube.Kubectl(t, "", "delete", "clusterrolebinding", "lockstep-fleet-namespace")
	n, other := newTenant(t, "enrolled"), newTenant(t, "other")
	createSecret(other, "password")
	n.apply(bind9Cluster("dns") + dnsZone("main", "corp", "clusterRef: dns") + aRecord("www", "main", "www", "192.0.2.1"))
	var command string
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		cluster := &v1beta1.Bind9Cluster{}
		if err := n.client.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: "dns"}, cluster); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != "NotEnrolled" || ready.Status != metav1.ConditionFalse {
			return fmt.Errorf("the cluster's condition is %+v", ready)
		}
		var found bool
		if _, command, found = strings.Cut(ready.Message, "kubectl "); !found {
			return fmt.Errorf("%q has no command", ready.Message)
		}
		return nil
	})
	fleet := accountClient(t, system, "lockstep-fleet")
	for _, what := range []string{"get secrets/password", "create statefulsets.apps", "create roles.rbac.authorization.k8s.io", "create bind9instances.bindy.firestoned.io"} {
		for _, namespace := range []string{n.namespace, other.namespace, system, "kube-system"} {
			if r := right(what + " " + namespace); isAllowed(t, fleet, r) {
				t.Errorf("may %s", r)
			}
		}
	}
	// The tenant cannot enroll its own namespace, not even as its admin.
	kube.Kubectl(t, "", "create", "rolebinding", "admin", "--namespace="+n.namespace, "--clusterrole=admin", "--user="+n.user)
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if out, err := n.try("", "auth", "can-i", "create", "rolebindings"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if out, err := n.try("", strings.Fields(command)...); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("the tenant enrolls its namespace: %v: %s", err, out)
	}
	kube.Kubectl(t, "", strings.Fields(command)...)
	waitServed(t, n.client, n.namespace, "www.corp", dns.TypeA, "192.0.2.1")
	if err := fleet.Get(t.Context(), client.ObjectKey{Namespace: other.namespace, Name: "password"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("reads a Secret elsewhere: %v", err)
	}
}
