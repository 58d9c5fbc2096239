// Package attack attacks Lockstep, installed in a real cluster, as its tenants and their pods can: a user with the role edit in
// one namespace and nothing else, a program in a pod, a hostile DNS server. Every attack has to fail with a clear refusal.
// Numbers in the tests' names are those of docs/security.md.
package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

// tenant is a user who has the role edit in one namespace, and no other right.
type tenant struct {
	*testing.T
	client          client.Client // with the rights of cluster-admin
	namespace, user string
}

// newTenant creates a tenant with a namespace of its own, whose name begins with a prefix.
func newTenant(t *testing.T, prefix string) *tenant {
	t.Helper()
	n := newUser(t, prefix)
	n.bindRole("ClusterRole", "edit", "dnszones.bindy.firestoned.io")
	return n
}

// newUser creates a user without any right, with a namespace whose name begins with a prefix.
func newUser(t *testing.T, prefix string) *tenant {
	t.Helper()
	n := &tenant{T: t, client: kube.Client(t), namespace: kube.Namespace(t, prefix)}
	n.user = "user-of-" + n.namespace
	return n
}

// bindRole gives the user a role in its namespace, and returns when that has taken effect: then the user may create resource.
func (n *tenant) bindRole(kind, role, resource string) {
	n.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: n.user}},
	}
	if err := n.client.Create(n.Context(), binding); err != nil {
		n.Fatal(err)
	}
	kube.Eventually(n, kube.Settle, func(context.Context) error {
		if out, err := n.try("", "auth", "can-i", "create", resource); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// try runs kubectl as the tenant in its namespace, with input on standard input, and returns what it printed.
func (n *tenant) try(input string, args ...string) (string, error) {
	n.Helper()
	return kube.TryKubectl(n, input, append([]string{"--as", n.user, "--namespace", n.namespace}, args...)...)
}

// kubectl is try for a command that has to succeed.
func (n *tenant) kubectl(args ...string) string {
	n.Helper()
	out, err := n.try("", args...)
	if err != nil {
		n.Fatalf("%s: kubectl %s: %v\n%s", n.user, strings.Join(args, " "), err, out)
	}
	return out
}

// apply applies a manifest as the tenant; it has to be accepted.
func (n *tenant) apply(manifest string) {
	n.Helper()
	if out, err := n.try(manifest, "apply", "-f", "-"); err != nil {
		n.Fatalf("%s: kubectl apply: %v\n%s", n.user, err, out)
	}
}

// expectRefused applies a manifest as the tenant, and requires that it is refused in words that contain all of want.
func (n *tenant) expectRefused(manifest string, want ...string) {
	n.Helper()
	out, err := n.try(manifest, "apply", "-f", "-")
	if err == nil {
		n.Errorf("%s may apply\n%s", n.user, manifest)
		return
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			n.Errorf("the refusal %q does not contain %q", out, w)
		}
	}
	n.Logf("refused: %s", out)
}

// waitAnswers waits until check accepts the answer of every server of a namespace to a question.
func waitAnswers(t testing.TB, c client.Client, namespace, name string, rrtype uint16, check func(reply *dns.Msg) error) {
	t.Helper()
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		all, err := kube.Servers(ctx, c, namespace)
		if err != nil {
			return err
		}
		for pod, server := range all {
			reply, err := kube.Query(server, name, rrtype, kube.QueryTimeout)
			if err == nil {
				err = check(reply)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
		}
		return nil
	})
}

// waitServed waits until every server of a namespace answers authoritatively with exactly these rdata; none means that the
// name or the type does not exist there.
func waitServed(t testing.TB, c client.Client, namespace, name string, rrtype uint16, rdata ...string) {
	t.Helper()
	waitAnswers(t, c, namespace, name, rrtype, func(reply *dns.Msg) error {
		if got := answersOf(reply, rrtype); !reply.Authoritative || !slices.Equal(got, rdata) {
			return fmt.Errorf("answers %s, authoritative %t, with %q for %s, want %q",
				dns.RcodeToString[reply.Rcode], reply.Authoritative, got, name, rdata)
		}
		return nil
	})
}

// answersOf returns the sorted rdata of an answer's RRs of a type.
func answersOf(reply *dns.Msg, rrtype uint16) []string {
	var rdata []string
	for _, rr := range reply.Answer {
		if rr.Header().Rrtype == rrtype {
			rdata = append(rdata, strings.TrimPrefix(rr.String(), rr.Header().String()))
		}
	}
	slices.Sort(rdata)
	return rdata
}
