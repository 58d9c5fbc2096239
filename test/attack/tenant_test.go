// Package attack attacks Lockstep, installed in a real cluster, as its tenants and their pods can: a user with the role edit in
// one namespace and nothing else, a program in a pod, a hostile DNS server. Every attack has to fail with a clear refusal.
// Numbers in the tests' names are those of docs/security.md.
package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

// settleTimeout is how long a change may take to be on every server before a test calls it lost.
const settleTimeout = 2 * time.Minute

// tenant is a user who has the role edit in one namespace, and no other right.
type tenant struct {
	*testing.T
	client          client.Client // with the rights of cluster-admin
	namespace, user string
}

// newTenant creates a tenant with a namespace of its own, whose name begins with a prefix.
func newTenant(t *testing.T, prefix string) *tenant {
	t.Helper()
	n := &tenant{T: t, client: kube.Client(t), namespace: kube.Namespace(t, prefix)}
	n.user = "user-of-" + n.namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: n.user}},
	}
	if err := n.client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	// The binding takes effect a moment after it was written.
	kube.Eventually(t, settleTimeout, func(context.Context) error {
		if out, err := n.try("", "auth", "can-i", "create", "dnszones.bindy.firestoned.io"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return n
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

// servers returns the addresses of named in the running pods of a namespace, by pod name.
func servers(ctx context.Context, c client.Client, namespace string) (map[string]string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			addresses[pod.Name] = net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(named.Port))
		}
	}
	if len(addresses) == 0 {
		return nil, errors.New("no pod has an address")
	}
	return addresses, nil
}

// waitServed waits until every server of a namespace answers authoritatively with exactly these rdata; none means that the
// name or the type does not exist there.
func waitServed(t testing.TB, c client.Client, namespace, name string, rrtype uint16, rdata ...string) {
	t.Helper()
	kube.Eventually(t, settleTimeout, func(ctx context.Context) error {
		all, err := servers(ctx, c, namespace)
		if err != nil {
			return err
		}
		for pod, server := range all {
			reply, err := query(ctx, server, name, rrtype)
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
			if got := answersOf(reply, rrtype); !reply.Authoritative || !slices.Equal(got, rdata) {
				return fmt.Errorf("%s answers %s, authoritative %t, with %q for %s, want %q",
					pod, dns.RcodeToString[reply.Rcode], reply.Authoritative, got, name, rdata)
			}
		}
		return nil
	})
}

func query(ctx context.Context, server, name string, rrtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), rrtype)
	reply, _, err := (&dns.Client{Timeout: 2 * time.Second}).ExchangeContext(ctx, m, server)
	return reply, err
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
