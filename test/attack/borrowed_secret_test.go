package attack

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// newEditor creates a user who may write the kinds of Lockstep in a namespace of its own, and can neither read Secrets nor create pods.
func newEditor(t *testing.T, prefix string) *tenant {
	t.Helper()
	n := newUser(t, prefix)
	n.bindRole("ClusterRole", "lockstep-edit", "dnsproviders.bindy.firestoned.io")
	n.bindRole("ClusterRole", "lockstep-view", "dnsproviders.bindy.firestoned.io")
	return n
}

const (
	etcdOfHers = `apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: steal}
spec: {coreDNS: {etcd: {endpoints: ["ENDPOINT"], credentialsSecretRef: {name: SECRET}}, servers: {addresses: [{address: 203.0.113.5}]}}}
`
	certificateOfOthers = `apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: steal}
spec: {coreDNS: {etcd: {endpoints: ["ENDPOINT"], tlsSecretRef: {name: SECRET}}, servers: {addresses: [{address: 203.0.113.5}]}}}
`
	updateKeyOfOthers = `apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: steal}
spec: {rfc2136: {primaries: [{address: 203.0.113.5}], updateKey: {secretRef: {name: SECRET}}}}
`
	transferKeyOfOthers = `apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: steal}
spec: {secondaries: {servers: [{address: 203.0.113.5}], transferKey: {secretRef: {name: SECRET}}}}
`
)

// A Secret that somebody may not read is used by none of her objects, wherever one names it; and what she is told is the same whether
// there is such a Secret.
func TestAttack26BorrowedSecret(t *testing.T) {
	kube.Isolated(t)
	n := newEditor(t, "borrower")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "database"}, Type: corev1.SecretTypeBasicAuth,
		StringData: map[string]string{"username": "admin", "password": "correct-horse"}}
	if err := n.client.Create(n.Context(), secret); err != nil {
		n.Fatal(err)
	}
	for name, manifest := range map[string]string{
		"password of etcd": etcdOfHers, "certificate": certificateOfOthers, "update key": updateKeyOfOthers, "transfer key": transferKeyOfOthers,
	} {
		refusals := map[string]string{}
		for _, secret := range []string{"database", "missing"} {
			text := strings.NewReplacer("ENDPOINT", "https://203.0.113.5:2379", "SECRET", secret).Replace(manifest)
			n.expectRefused(text, "Secret "+secret, "you need the right to get it in namespace "+n.namespace)
			out, _ := n.try(text, "apply", "-f", "-")
			refusals[secret] = strings.ReplaceAll(out, secret, "SECRET")
		}
		if refusals["database"] != refusals["missing"] {
			n.Errorf("%s: a refusal tells whether there is a Secret: %q and %q", name, refusals["database"], refusals["missing"])
		}
	}
}

// Who may not read the Secret of a provider cannot send it elsewhere, and may change what has nothing to do with it.
func TestAttack26RedirectedSecret(t *testing.T) {
	kube.Isolated(t)
	n, owner := newEditor(t, "redirect"), newTenant(t, "owner")
	owner.namespace = n.namespace
	owner.bindRole("ClusterRole", "edit", "dnsproviders.bindy.firestoned.io")
	owner.apply(`{apiVersion: v1, kind: Secret, metadata: {name: database}, stringData: {username: admin, password: correct-horse}}`)
	owner.expectRefused(strings.NewReplacer("ENDPOINT", "http://203.0.113.5:2379", "SECRET", "database").Replace(etcdOfHers), "all endpoints must begin with https://")
	owner.apply(strings.NewReplacer("ENDPOINT", "https://203.0.113.5:2379", "SECRET", "database").Replace(etcdOfHers))
	for name, patch := range map[string]string{
		"endpoint": `{"spec":{"coreDNS":{"etcd":{"endpoints":["https://203.0.113.66:2379"]}}}}`,
		"one more": `{"spec":{"coreDNS":{"etcd":{"endpoints":["https://203.0.113.5:2379","https://203.0.113.66:2379"]}}}}`,
		"http":     `{"spec":{"coreDNS":{"etcd":{"endpoints":["http://203.0.113.66:2379"]}}}}`,
		"trust":    `{"spec":{"coreDNS":{"etcd":{"tlsSecretRef":{"name":"hers"}}}}}`,
	} {
		if out, err := n.try("", "patch", "dnsprovider", "steal", "--type=merge", "-p", patch); err == nil {
			n.Errorf("%s: the password can be sent elsewhere: %s", name, out)
		}
	}
	n.kubectl("patch", "dnsprovider", "steal", "--type=merge", "-p", `{"spec":{"coreDNS":{"servers":{"addresses":[{"address":"203.0.113.7"}]}}}}`)
	n.kubectl("annotate", "dnsprovider", "steal", "example.com/note=hers")
}
