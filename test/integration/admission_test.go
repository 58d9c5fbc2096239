package integration

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// system is where Lockstep is installed.
const system = "lockstep-system"

// newAdmission is a namespace with a zone and no servers: admission needs none.
func newAdmission(t *testing.T) *fixture {
	t.Helper()
	kube.Install(t)
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it-admission"), zone: "admission.example"}
	f.answers()
	f.create(f.dnsZone("main", f.zone))
	f.known("main")
	return f
}

// answers waits until kube-apiserver reaches the webhook, which may have been installed a moment ago.
func (f *fixture) answers() {
	f.Helper()
	kube.Eventually(f, settle, func(ctx context.Context) error {
		err := f.client.Create(ctx, f.a("probe", "probe", "not an address"), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("the webhook does not refuse a bad record: %w", err)
		}
		return nil
	})
}

// known waits until the webhook's cache has the zone that selects the label.
func (f *fixture) known(label string) {
	f.Helper()
	kube.Eventually(f, settle, func(ctx context.Context) error {
		probe := f.a("probe", "probe", "192.0.2.1")
		probe.Labels["zone"] = label
		if err := f.client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Annotations[v1beta1.ZoneAnnotation] == "" {
			return errors.New("the zone selects nothing yet")
		}
		return nil
	})
}

// What kubectl apply says to the user when something is wrong: field, value and remedy.
func TestAdmissionRefusesWithFieldValueAndRemedy(t *testing.T) {
	f := newAdmission(t)
	f.create(f.a("www", "www", "192.0.2.1"))
	tests := map[string]struct {
		kind, spec string
		want       []string
	}{
		"address":     {"ARecord", `{name: a, ipv4Addresses: [192.0.2.1, 192.0.2.300]}`, []string{"spec.ipv4Addresses[1]", "192.0.2.300"}},
		"name":        {"ARecord", `{name: www.elsewhere.example., ipv4Addresses: [192.0.2.1]}`, []string{"spec.name", "www.elsewhere.example."}},
		"alias":       {"CNAMERecord", `{name: www, target: other.example.}`, []string{"spec.name", "ARecord", "/www", "older"}},
		"apex alias":  {"CNAMERecord", `{name: "@", target: other.example.}`, []string{"spec.name", "publish addresses"}},
		"long string": {"TXTRecord", `{name: t, text: ["` + strings.Repeat("x", 66000) + `"]}`, []string{"spec.text"}},
		"operator": {"DNSZone", `{zoneName: b.example, soaRecord: {primaryNs: ns1.b.example., adminEmail: a.b.example.}, recordsFrom: [{selector: {matchExpressions: [{key: app, operator: Like, values: [x]}]}}]}`,
			[]string{"spec.recordsFrom[0].selector.matchExpressions[0]", "Like", "In", "NotIn", "Exists", "DoesNotExist"}},
		"operator without values": {"DNSZone", `{zoneName: b.example, soaRecord: {primaryNs: ns1.b.example., adminEmail: a.b.example.}, recordsFrom: [{selector: {matchExpressions: [{key: app, operator: In}]}}]}`,
			[]string{"spec.recordsFrom[0].selector.matchExpressions[0]", "In", "values"}},
		"label": {"DNSZone", `{zoneName: b.example, soaRecord: {primaryNs: ns1.b.example., adminEmail: a.b.example.}, recordsFrom: [{selector: {matchLabels: {app: "no label"}}}]}`,
			[]string{"spec.recordsFrom[0].selector.matchLabels", "label values", "at most 63"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := "{apiVersion: bindy.firestoned.io/v1beta1, kind: " + tc.kind + ", metadata: {name: bad, labels: {zone: main}}, spec: " + tc.spec + "}"
			out, err := kube.TryKubectl(t, manifest, "-n", f.namespace, "apply", "-f", "-")
			if err == nil {
				t.Fatalf("accepted:\n%s", out)
			}
			for _, word := range tc.want {
				if !strings.Contains(out, word) {
					t.Errorf("kubectl does not say %q:\n%s", word, out)
				}
			}
		})
	}
}

func TestAdmissionStampsRecords(t *testing.T) {
	f := newAdmission(t)
	for _, kind := range v1beta1.RecordKinds {
		t.Run(kind.Kind, func(t *testing.T) {
			record := kind.New()
			manifest := fmt.Sprintf("{apiVersion: bindy.firestoned.io/v1beta1, kind: %s, metadata: {name: all, labels: {zone: main}}, spec: %s}", kind.Kind, specOf[kind.Kind])
			kube.Kubectl(t, manifest, "-n", f.namespace, "apply", "-f", "-")
			if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "all"}, record); err != nil {
				t.Fatal(err)
			}
			if got := record.GetAnnotations()[v1beta1.ZoneAnnotation]; got != f.zone {
				t.Errorf("stamped %q, want %q", got, f.zone)
			}
		})
	}
}

// specOf is the least that each kind takes.
var specOf = map[string]string{
	"ARecord":     `{name: a, ipv4Addresses: [192.0.2.1]}`,
	"AAAARecord":  `{name: a, ipv6Addresses: ["2001:db8::1"]}`,
	"CNAMERecord": `{name: c, target: a}`,
	"NSRecord":    `{name: sub, nameserver: ns.other.example.}`,
	"TXTRecord":   `{name: t, text: [x]}`,
	"MXRecord":    `{name: "@", priority: 10, mailServer: a}`,
	"SRVRecord":   `{name: _sip._tcp, priority: 1, weight: 1, port: 5060, target: a}`,
	"CAARecord":   `{name: "@", flags: 0, tag: issue, value: ca.example}`,
}

// The stamp follows the labels and comes back when somebody edits it, in the answer to the very request.
func TestAdmissionKeepsStamp(t *testing.T) {
	f := newAdmission(t)
	record := f.a("www", "www", "192.0.2.1")
	f.create(record)
	change(f, record, func(r *v1beta1.ARecord) {
		r.Annotations = map[string]string{v1beta1.ZoneAnnotation: "mine.example", "note": "kept"}
	})
	if record.Annotations[v1beta1.ZoneAnnotation] != f.zone || record.Annotations["note"] != "kept" {
		t.Errorf("after an edit by hand: %v", record.Annotations)
	}
	change(f, record, func(r *v1beta1.ARecord) { r.Labels["zone"] = "none" })
	if stamp, ok := record.Annotations[v1beta1.ZoneAnnotation]; ok {
		t.Errorf("selected by no zone, stamped %q", stamp)
	}
	change(f, record, func(r *v1beta1.ARecord) { r.Labels["zone"] = "main" })
	if record.Annotations[v1beta1.ZoneAnnotation] != f.zone {
		t.Errorf("selected again: %v", record.Annotations)
	}
}

// While no webhook answers, specifications of our kinds cannot change, and everything else goes on: other kinds, status,
// finalizers, deletion, namespaces.
func TestAdmissionDownHoldsUpNothingElse(t *testing.T) {
	f := newAdmission(t)
	record := f.a("www", "www", "192.0.2.1")
	record.Finalizers = []string{"example.com/held"}
	f.create(record)
	kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-webhook", "--replicas=0")
	t.Cleanup(func() {
		kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-webhook", "--replicas=1")
		kube.Kubectl(t, "", "-n", system, "rollout", "status", "deployment/lockstep-webhook", "--timeout=60s")
	})
	kube.Eventually(f, settle, func(ctx context.Context) error {
		if err := f.client.Create(ctx, f.a("probe", "probe", "192.0.2.1"), client.DryRunAll); !apierrors.IsInternalError(err) {
			return fmt.Errorf("a record was admitted without a webhook: %w", err)
		}
		return nil
	})
	f.create(&corev1.ConfigMap{ObjectMeta: f.meta("other", nil)})
	for what, edit := range map[string]func(*v1beta1.ARecord){
		"annotations": func(r *v1beta1.ARecord) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, "note", "x") },
		"finalizers":  func(r *v1beta1.ARecord) { controllerutil.AddFinalizer(r, "example.com/second") },
	} {
		t.Run(what, func(*testing.T) { change(f, record, edit) })
	}
	record.Status.Zone = "status.example"
	if err := f.client.Status().Update(t.Context(), record); err != nil && !apierrors.IsConflict(err) {
		t.Errorf("writing status: %v", err)
	}
	if err := f.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	change(f, record, func(r *v1beta1.ARecord) {
		controllerutil.RemoveFinalizer(r, "example.com/held")
		controllerutil.RemoveFinalizer(r, "example.com/second")
	})
	kube.Eventually(f, settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the record is still there: %w", err)
		}
		return nil
	})
}

// Deleting the authority's Secret makes a new authority beside the old one, and no call fails meanwhile.
func TestAdmissionCertificateAuthorityHeals(t *testing.T) {
	f := newAdmission(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: certs.SecretName}}
	if err := f.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if err := f.client.Create(t.Context(), f.a("probe", "probe", "192.0.2.1"), client.DryRunAll); err != nil {
			t.Fatalf("a call failed while the authority was replaced: %v", err)
		}
		kube.Kubectl(t, "", "get", "--raw", "/apis/sync.bindy.firestoned.io/v1alpha1")
	}
	kube.Eventually(f, settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		state, err := certs.ReadSecret(secret)
		if err != nil {
			return err
		}
		return f.trusts(ctx, state.Bundle())
	})
	if n := bytes.Count(secret.Data["bundle.crt"], []byte("-----BEGIN CERTIFICATE-----")); n < 2 {
		t.Errorf("%d trusted certificates during a roll-over, want the old and the new", n)
	}
}

// trusts tells what kube-apiserver would not trust the bundle for.
func (f *fixture) trusts(ctx context.Context, bundle []byte) error {
	if block, _ := pem.Decode(bundle); block == nil {
		return errors.New("the bundle is empty")
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	key := client.ObjectKey{Name: "lockstep-webhook"}
	if err := errors.Join(f.client.Get(ctx, key, &mutating), f.client.Get(ctx, key, &validating)); err != nil {
		return err
	}
	for _, webhook := range mutating.Webhooks {
		if !bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
			return fmt.Errorf("webhook %s has another bundle", webhook.Name)
		}
	}
	for _, webhook := range validating.Webhooks {
		if !bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
			return fmt.Errorf("webhook %s has another bundle", webhook.Name)
		}
	}
	return nil
}
