package certs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names of Secrets in the namespace that Lockstep is installed in. The fleet manager alone may read the authority's; of the
// others, each is for the component in its name.
const (
	SecretName             = "lockstep-ca"
	APIServerSecret        = "lockstep-apiserver-tls" //nolint:gosec // a name, no secret
	WebhookSecret          = "lockstep-webhook-tls"
	ControllerClientSecret = "lockstep-controller-client"
	APIServerClientSecret  = "lockstep-apiserver-client" //nolint:gosec // a name, no secret
	MetricsClientSecret    = "lockstep-metrics-client"
	VantageSecret          = "lockstep-vantage-tls"
)

// Keys of the Secret's data, all PEM.
const (
	signerCert = "ca.crt"
	signerKey  = "ca.key"
	nextCert   = "next.crt"
	nextKey    = "next.key"
	bundleCert = "bundle.crt"
)

// sinceAnnotation on the Secret is when the present signer began to sign (RFC 3339).
const sinceAnnotation = "bindy.firestoned.io/ca-signs-since"

// SecretKey names the authority's Secret in the namespace that Lockstep is installed in.
func SecretKey(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: SecretName}
}

// ServiceNames are the DNS names of a Service inside the cluster. kube-apiserver uses the first.
func ServiceNames(service, namespace string) []string {
	name := service + "." + namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}

// ReadSecret reads the authority from its Secret. It fails when anything in it is missing or does not fit together.
func ReadSecret(secret *corev1.Secret) (State, error) {
	signer, err := parseAuthority(secret.Data[signerCert], secret.Data[signerKey])
	if err != nil {
		return State{}, fmt.Errorf("%s and %s: %w", signerCert, signerKey, err)
	}
	s := State{Signer: signer, Since: signer.createdAt()}
	if since, err := time.Parse(time.RFC3339, secret.Annotations[sinceAnnotation]); err == nil {
		s.Since = since
	}
	if len(secret.Data[nextCert]) > 0 {
		if s.Next, err = parseAuthority(secret.Data[nextCert], secret.Data[nextKey]); err != nil {
			return State{}, fmt.Errorf("%s and %s: %w", nextCert, nextKey, err)
		}
	}
	bundle, err := parseCerts(secret.Data[bundleCert])
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", bundleCert, err)
	}
	s.Retired = retiredCerts(bundle, s.Signer, s.Next)
	return s, nil
}

// newSecret returns an empty Secret for the authority.
func newSecret(key types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace,
		Name:      key.Name,
		Labels: map[string]string{
			"app.kubernetes.io/part-of":    "lockstep",
			"app.kubernetes.io/managed-by": "lockstep-controller",
		},
	}}
}

// writeSecret puts the authority into its Secret.
func writeSecret(s State, secret *corev1.Secret) error {
	data := map[string][]byte{
		signerCert: encodeCert(s.Signer.Cert),
		bundleCert: s.Bundle(),
	}
	var err error
	if data[signerKey], err = encodeKey(s.Signer.Key); err != nil {
		return err
	}
	if s.Next != nil {
		data[nextCert] = encodeCert(s.Next.Cert)
		if data[nextKey], err = encodeKey(s.Next.Key); err != nil {
			return err
		}
	}
	secret.Data = data
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[sinceAnnotation] = s.Since.UTC().Format(time.RFC3339)
	return nil
}
