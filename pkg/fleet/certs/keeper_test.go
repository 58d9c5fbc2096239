package certs

import (
	"bytes"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const recipientSecret = "lockstep-server-tls"

// keeperAt returns a Keeper with a recipient, in a cluster that begins empty, whose clock the test holds.
func keeperAt(now *time.Time) (*Keeper, *fake.Clientset) {
	client := fake.NewClientset()
	client.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.CreateAction).GetObject().(*corev1.Secret).ResourceVersion = "1" // which the fake leaves out
		return false, nil, nil
	})
	k := newKeeper(client, dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), logr.Discard(), SecretKey("ns"))
	k.Recipients, k.Self = []Recipient{{recipientSecret, serviceSubject}}, aClient
	k.now = func() time.Time { return *now }
	return k, client
}

func syncOnce(t *testing.T, k *Keeper) State {
	t.Helper()
	if err := k.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := k.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func getSecret(t *testing.T, client *fake.Clientset, name string) *corev1.Secret {
	t.Helper()
	secret, err := client.CoreV1().Secrets("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// What a recipient has is replaced when it must be, and only then; what it has verifies what everybody else has.
func TestKeeperIssues(t *testing.T) {
	life := DefaultPolicy.LeafLife
	tests := map[string]struct {
		change func(t *testing.T, k *Keeper, client *fake.Clientset, now *time.Time)
		want   bool
	}{
		"nothing happens":   {func(*testing.T, *Keeper, *fake.Clientset, *time.Time) {}, false},
		"half of its life":  {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.Add(life / 2) }, false},
		"two thirds":        {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.Add(life * 2 / 3) }, true},
		"long without us":   {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.Add(3 * life) }, true},
		"clock set back":    {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.Add(-3 * time.Hour) }, true},
		"clock set forward": {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.AddDate(0, 2, 0) }, true},
		"deleted":           {func(t *testing.T, _ *Keeper, c *fake.Clientset, _ *time.Time) { deleteSecret(t, c, recipientSecret) }, true},
		"tampered with": {func(t *testing.T, _ *Keeper, c *fake.Clientset, _ *time.Time) {
			changeSecret(t, c, recipientSecret, corev1.TLSCertKey, []byte("garbage"))
		}, true},
		"another's bundle": {func(t *testing.T, _ *Keeper, c *fake.Clientset, now *time.Time) {
			changeSecret(t, c, recipientSecret, BundleKey, settle(t, State{}, *now).Bundle())
		}, true},
		"another's certificate": {func(t *testing.T, k *Keeper, c *fake.Clientset, now *time.Time) {
			data, err := k.last.Issue(*now, aClient)
			if err != nil {
				t.Fatal(err)
			}
			changeSecret(t, c, recipientSecret, corev1.TLSCertKey, data[corev1.TLSCertKey])
			changeSecret(t, c, recipientSecret, corev1.TLSPrivateKeyKey, data[corev1.TLSPrivateKeyKey])
		}, true},
		"authority deleted": {func(t *testing.T, _ *Keeper, c *fake.Clientset, _ *time.Time) { deleteSecret(t, c, SecretName) }, true},
		"authority deleted, restart": {func(t *testing.T, k *Keeper, c *fake.Clientset, _ *time.Time) {
			deleteSecret(t, c, SecretName)
			k.last = State{Signer: nil}
			k.known = make(chan struct{})
		}, true},
		"restart of the controller": {func(_ *testing.T, k *Keeper, _ *fake.Clientset, _ *time.Time) {
			k.last, k.known = State{}, make(chan struct{})
		}, false},
		"a year: another authority":    {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.AddDate(1, 0, 1) }, true},
		"eight months: one more of it": {func(_ *testing.T, _ *Keeper, _ *fake.Clientset, now *time.Time) { *now = now.AddDate(0, 9, 0) }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := epoch
			k, client := keeperAt(&now)
			syncOnce(t, k)
			before := getSecret(t, client, recipientSecret)
			if before.Type != corev1.SecretTypeTLS {
				t.Errorf("type %s", before.Type)
			}
			tc.change(t, k, client, &now)
			state := syncOnce(t, k)
			after := getSecret(t, client, recipientSecret)
			if got := !bytes.Equal(before.Data[corev1.TLSCertKey], after.Data[corev1.TLSCertKey]); got != tc.want {
				t.Errorf("issued = %v, want %v", got, tc.want)
			}
			if !state.IsCurrent(after.Data, now, serviceSubject) {
				t.Error("what the recipient has is not current")
			}
			requireVerified(t, k, after.Data[corev1.TLSCertKey], now)
		})
	}
}

// requireVerified checks that this process accepts a server's certificate at this time, and has one of its own that is valid.
func requireVerified(t *testing.T, k *Keeper, certPEM []byte, now time.Time) {
	t.Helper()
	config, err := k.ClientConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	certs, err := parseCerts(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{Roots: config.RootCAs, CurrentTime: now, DNSName: serviceSubject.DNSNames[0]}); err != nil {
		t.Error(err)
	}
	own, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.VerifyOptions{Roots: config.RootCAs, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := own.Leaf.Verify(clients); err != nil {
		t.Error(err)
	}
}

// Everybody who holds a bundle hears of another one: sidecars must trust a successor before it signs.
func TestKeeperReportsChanges(t *testing.T) {
	now, changes := epoch, 0
	k, _ := keeperAt(&now)
	k.Changed = func() { changes++ }
	for _, step := range []struct {
		after time.Duration
		want  int
	}{
		{0, 1}, {time.Hour, 1}, // made
		{DefaultPolicy.CALife * 2 / 3, 2}, {time.Minute, 2}, // a successor is published
		{DefaultPolicy.Overlap, 3}, {time.Minute, 3}, // and signs
		{DefaultPolicy.LeafLife, 4}, // the former is dropped
	} {
		now = now.Add(step.after)
		if syncOnce(t, k); changes != step.want {
			t.Fatalf("%d changes at %s, want %d", changes, now, step.want)
		}
	}
}

// Bundles that cannot be published keep nobody from a new certificate.
func TestKeeperIssuesWithoutTargets(t *testing.T) {
	now := epoch
	k, client := keeperAt(&now)
	syncOnce(t, k)
	unreachable := errors.New("no rights")
	k.Targets = []Target{APIService("x")}
	k.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, unreachable
	})
	deleteSecret(t, client, recipientSecret)
	if err := k.Sync(t.Context()); !errors.Is(err, unreachable) {
		t.Errorf("got %v", err)
	}
	getSecret(t, client, recipientSecret)
}

func deleteSecret(t *testing.T, client *fake.Clientset, name string) {
	t.Helper()
	if err := client.CoreV1().Secrets("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func changeSecret(t *testing.T, client *fake.Clientset, name, key string, value []byte) {
	t.Helper()
	secret := getSecret(t, client, name)
	secret.Data[key] = value
	if _, err := client.CoreV1().Secrets("ns").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// What others have put on a Secret outlives that it is issued anew.
func TestKeeperKeepsOthersMetadata(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	k, client := keeperAt(&now)
	syncOnce(t, k)
	secrets := client.CoreV1().Secrets("ns")
	before := getSecret(t, client, recipientSecret)
	before.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "dns"}
	before.Labels = map[string]string{"backup": "yes"}
	before.Finalizers = []string{"example.com/keep"}
	before.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}}
	before, err := secrets.Update(t.Context(), before, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before = before.DeepCopy()
	now = now.AddDate(1, 0, 0)
	syncOnce(t, k)
	after := getSecret(t, client, recipientSecret)
	if string(after.Data[corev1.TLSCertKey]) == string(before.Data[corev1.TLSCertKey]) {
		t.Error("the certificate is not replaced")
	}
	if diff := cmp.Diff(before.ObjectMeta, after.ObjectMeta, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "ManagedFields")); diff != "" {
		t.Errorf("metadata (-before +after):\n%s", diff)
	}
}
