package integration

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// system is where Lockstep is installed.
const system = "lockstep-system"

// newAdmission is a namespace with a zone and no servers: admission needs none.
func newAdmission(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it-admission"), zone: "admission.example"}
	f.waitWebhookAnswers()
	f.create(f.dnsZone("main", f.zone))
	f.waitZoneKnown("main")
	return f
}

// waitWebhookAnswers waits until kube-apiserver reaches the webhook, which may have been installed a moment ago. Until then
// it accepts no record; bad ones it refuses by itself.
func (f *fixture) waitWebhookAnswers() {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		return f.client.Create(ctx, f.aRecord("probe", "probe", "192.0.2.1"), client.DryRunAll)
	})
}

// waitZoneKnown waits until the webhook's cache has the zone that selects the label.
func (f *fixture) waitZoneKnown(label string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		probe := f.aRecord("probe", "probe", "192.0.2.1")
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
	kube.Isolated(t)
	f := newAdmission(t)
	f.create(f.aRecord("www", "www", "192.0.2.1"), f.singleEndpoint("shop", "shop."+f.zone, "A", "192.0.2.1"))
	f.waitWarned("CNAMERecord", "{name: shop, target: www}", "DNSEndpoint", "/shop", "older")
	f.waitWarned("CNAMERecord", "{name: www, target: other.example.}", "spec.name", "ARecord", "/www", "older")
	tests := map[string]struct {
		kind, spec string
		want       []string
	}{
		"address":     {"ARecord", `{name: a, ipv4Addresses: [192.0.2.1, 192.0.2.300]}`, []string{"spec.ipv4Addresses[1]", "192.0.2.300"}},
		"name":        {"ARecord", `{name: www.elsewhere.example., ipv4Addresses: [192.0.2.1]}`, []string{"spec.name", "www.elsewhere.example."}},
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

// singleEndpoint declares one RRset as programs do.
func (f *fixture) singleEndpoint(object, name, rrtype string, targets ...string) *v1alpha1.DNSEndpoint {
	e := &v1alpha1.DNSEndpoint{ObjectMeta: f.meta(object, nil)}
	e.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: name, RecordType: rrtype, Targets: targets}}
	return e
}

// waitWarned waits until the webhook knows of what a record would wait for: it stores the record, and its warning has these words.
func (f *fixture) waitWarned(kind, spec string, words ...string) {
	f.Helper()
	manifest := "{apiVersion: bindy.firestoned.io/v1beta1, kind: " + kind + ", metadata: {name: bad, labels: {zone: main}}, spec: " + spec + "}"
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		out := kube.Kubectl(f, manifest, "-n", f.namespace, "apply", "--dry-run=server", "-f", "-")
		for _, word := range words {
			if !strings.Contains(out, word) {
				return fmt.Errorf("kubectl does not say %q: %s", word, out)
			}
		}
		return nil
	})
}

// Endpoints are validated by external-dns' notation; what is only unknown here is stored, because other programs read them.
func TestAdmissionJudgesEndpoints(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	tests := map[string]struct {
		name, rrtype, target string
		refused              bool
		want                 []string
	}{
		"published":     {"www." + f.zone, "A", "192.0.2.1", false, nil},
		"in notation":   {f.zone, "MX", "10 mail.example.net", false, nil},
		"bad address":   {"www." + f.zone, "A", "192.0.2.300", true, []string{"spec.endpoints[0].targets[0]", "192.0.2.300", "such as"}},
		"bad priority":  {f.zone, "MX", "mail.example.net", true, []string{"spec.endpoints[0].targets[0]", "mail.example.net", "preference"}},
		"unknown type":  {"www." + f.zone, "ALIAS", "anything", false, []string{"Warning", "spec.endpoints[0].recordType", "ALIAS"}},
		"no zone of us": {"www.elsewhere.example", "A", "192.0.2.1", false, []string{"Warning", "spec.endpoints[0].dnsName", "www.elsewhere.example"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := fmt.Sprintf("{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e}, spec: {endpoints: [{dnsName: %s, recordType: %s, targets: [%s]}]}}",
				tc.name, tc.rrtype, tc.target)
			out, err := kube.TryKubectl(t, manifest, "-n", f.namespace, "apply", "--dry-run=server", "-f", "-")
			if refused := err != nil; refused != tc.refused || strings.Contains(out, "Warning") != slices.Contains(tc.want, "Warning") {
				t.Errorf("refused = %v, want %v:\n%s", refused, tc.refused, out)
			}
			for _, word := range tc.want {
				if !strings.Contains(out, word) {
					t.Errorf("kubectl does not say %q:\n%s", word, out)
				}
			}
		})
	}
}

// The very answer to a creation has the marks, so nothing has to be written before the record is published.
func TestAdmissionMarksRecords(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	for _, kind := range v1beta1.RecordKinds {
		t.Run(kind.Kind, func(t *testing.T) {
			record := kind.New().(client.Object)
			manifest := fmt.Sprintf("{metadata: {name: all, namespace: %s, labels: {zone: main}}, spec: %s}", f.namespace, specOf[kind.Kind])
			if err := yaml.Unmarshal([]byte(manifest), record); err != nil {
				t.Fatal(err)
			}
			// A dry run is never seen by the controller.
			if err := f.client.Create(t.Context(), record, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if got := record.GetAnnotations()[v1beta1.ZoneAnnotation]; got != f.zone || !controllerutil.ContainsFinalizer(record, v1beta1.Finalizer) {
				t.Errorf("stamped %q, want %q; finalizers %v", got, f.zone, record.GetFinalizers())
			}
			record.SetResourceVersion("")
			record.SetUID("")
			f.create(record)
			if err := f.client.Delete(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			f.waitGone(record)
		})
	}
}

// A DNSEndpoint is held as long as the controller says, and remembers the names that it had.
func TestAdmissionMarksEndpoints(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	e := f.singleEndpoint("www", "www."+f.zone, "A", "192.0.2.1")
	f.create(e)
	if !controllerutil.ContainsFinalizer(e, v1beta1.Finalizer) {
		t.Error("not marked")
	}
	elsewhere := f.singleEndpoint("elsewhere", "www.elsewhere.example", "A", "192.0.2.1")
	if f.create(elsewhere); controllerutil.ContainsFinalizer(elsewhere, v1beta1.Finalizer) {
		t.Error("marked although no zone takes it")
	}
	renamed := e.DeepCopy()
	renamed.Spec.Endpoints[0].DNSName = "web." + f.zone
	renamed.Finalizers = nil
	if err := f.client.Patch(t.Context(), renamed, client.MergeFrom(e), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got, want := renamed.Annotations[v1beta1.FormerNamesAnnotation], "www."+f.zone+"./A"; got != want || !controllerutil.ContainsFinalizer(renamed, v1beta1.Finalizer) {
		t.Errorf("former names %q, want %q; finalizers %v", got, want, renamed.Finalizers)
	}
	for _, o := range []client.Object{e, elsewhere} {
		if err := f.client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		f.waitGone(o)
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
	"PTRRecord":   `{name: "10", target: a}`,
	"DNSRecord":   `{name: h, type: HTTPS, data: ["1 ."]}`,
	"CAARecord":   `{name: "@", flags: 0, tag: issue, value: ca.example}`,
}

// What is remembered of a record whose data may be in DNS survives whatever a user writes; the controller may change it.
func TestAdmissionKeepsMarks(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	record := f.aRecord("www", "www", "192.0.2.1")
	f.create(record)
	held := []string{v1beta1.Finalizer}
	tests := map[string]struct {
		user   string // a ServiceAccount of Lockstep's
		edit   func(*v1beta1.ARecord)
		want   map[string]string
		finals []string
	}{
		"edited":     {edit: func(r *v1beta1.ARecord) { r.Annotations[v1beta1.ZoneAnnotation] = "mine.example" }, want: map[string]string{"zone": f.zone}, finals: held},
		"removed":    {edit: func(r *v1beta1.ARecord) { r.Annotations, r.Finalizers = nil, nil }, want: map[string]string{"zone": f.zone}, finals: held},
		"relabelled": {edit: func(r *v1beta1.ARecord) { r.Labels["zone"] = "none" }, want: map[string]string{"zone": f.zone}, finals: held},
		"renamed":    {edit: func(r *v1beta1.ARecord) { r.Spec.Name = "web" }, want: map[string]string{"zone": f.zone, "former-names": "www/A"}, finals: held},
		"renamed and relabelled": {
			edit: func(r *v1beta1.ARecord) { r.Spec.Name, r.Labels, r.Finalizers = "web", nil, nil },
			want: map[string]string{"zone": f.zone, "former-names": "www/A"}, finals: held,
		},
		"released by the controller": {user: "lockstep-controller", edit: func(r *v1beta1.ARecord) { r.Annotations, r.Finalizers = nil, nil }, want: map[string]string{}},
		"moved by the controller":    {user: "lockstep-controller", edit: func(r *v1beta1.ARecord) { r.Annotations[v1beta1.ZoneAnnotation] = "other.example" }, want: map[string]string{"zone": "other.example"}, finals: held},
		"let go by the uninstaller":  {user: "lockstep-uninstall", edit: func(r *v1beta1.ARecord) { r.Finalizers = nil }, want: map[string]string{"zone": f.zone}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := f.client
			if tc.user != "" {
				config := rest.CopyConfig(kube.Config(t))
				config.Impersonate.UserName = "system:serviceaccount:" + system + ":" + tc.user
				c = kube.ClientAs(t, config)
			}
			kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
				if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
					return err
				}
				before := record.DeepCopy()
				tc.edit(record)
				return c.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.DryRunAll)
			})
			got := map[string]string{}
			for annotation, value := range record.Annotations {
				got[strings.TrimPrefix(annotation, v1beta1.GroupName+"/")] = value
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.finals, record.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// A record that no zone takes any more is let go by the controller, marks and all, and marked again when one does.
func TestAdmissionAndControllerAgreeOnMarks(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	record := f.aRecord("www", "www", "192.0.2.1")
	f.create(record)
	f.waitMarked(record, f.zone)
	change(f, record, func(r *v1beta1.ARecord) { r.Labels["zone"] = "none" })
	f.waitMarked(record, "")
	change(f, record, func(r *v1beta1.ARecord) { r.Labels["zone"] = "main" })
	if record.Annotations[v1beta1.ZoneAnnotation] != f.zone || !controllerutil.ContainsFinalizer(record, v1beta1.Finalizer) {
		t.Errorf("not marked by the write that brings it back: %v, %v", record.Annotations, record.Finalizers)
	}
	f.waitMarked(record, f.zone)
	if err := f.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	f.waitGone(record)
}

// waitMarked waits until the record is stamped with the zone and held, or neither when there is none.
func (f *fixture) waitMarked(record *v1beta1.ARecord, zone string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if record.Annotations[v1beta1.ZoneAnnotation] != zone || controllerutil.ContainsFinalizer(record, v1beta1.Finalizer) != (zone != "") {
			return fmt.Errorf("marks %v, %v, want zone %q", record.Annotations, record.Finalizers, zone)
		}
		return nil
	})
}

// Two zones of one name that came to share their servers: the records of the one that is not served can be deleted.
func TestAdmissionMarksDoNotOutliveADuplicateZone(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	second := f.dnsZone("second", f.zone)
	f.create(second) // No servers yet, so no duplicate yet.
	f.waitZoneKnown("second")
	f.create(&v1beta1.Bind9Instance{ObjectMeta: f.meta("shared", nil), Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "dns", Role: v1beta1.RolePrimary}})
	record := f.aRecord("www", "www", "192.0.2.1")
	record.Labels["zone"] = f.waitDuplicate("main", "second")
	f.create(record)
	if !controllerutil.ContainsFinalizer(record, v1beta1.Finalizer) {
		t.Fatal("not marked")
	}
	if err := f.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	f.waitGone(record)
}

// waitDuplicate waits until one of the zones reports that it is the duplicate of another.
func (f *fixture) waitDuplicate(names ...string) (found string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		for _, name := range names {
			zone := &v1beta1.DNSZone{}
			if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, zone); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(zone.Status.Conditions, "Ready"); c != nil && c.Reason == "DuplicateZone" {
				found = name
				return nil
			}
		}
		return errors.New("no zone reports that it is a duplicate")
	})
	return found
}

// Deleting the authority's Secret makes a new authority beside the old one, and no call fails meanwhile.
func TestAdmissionCertificateAuthorityHeals(t *testing.T) {
	var f *fixture
	kube.Disruptive(t, func() { f = newAdmission(t) })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l := newClients(t)
	probe := f.aRecord("probe", "probe", "192.0.2.1")
	probe.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("ARecord"))
	l.repeat(ctx, "admission", 20*time.Millisecond, l.create("/apis/"+v1beta1.SchemeGroupVersion.String()+"/namespaces/"+f.namespace+"/arecords?dryRun=All", probe))
	l.repeat(ctx, "discovery", 20*time.Millisecond, l.get("/apis/sync.bindy.firestoned.io/v1alpha1"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: certs.SecretName}}
	if err := f.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		state, err := certs.ReadSecret(secret)
		if err != nil {
			return err
		}
		return f.checkBundles(ctx, state.Bundle())
	})
	stop()
	l.requireNoFailure()
	if n := bytes.Count(secret.Data["bundle.crt"], []byte("-----BEGIN CERTIFICATE-----")); n < 2 {
		t.Errorf("%d trusted certificates during a roll-over, want the old and the new", n)
	}
}

// checkBundles returns an error when kube-apiserver does not trust the bundle for a webhook.
func (f *fixture) checkBundles(ctx context.Context, bundle []byte) error {
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
