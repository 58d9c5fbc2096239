package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
)

const (
	home = "lockstep-system"
	// hidden must not be in any fact.
	hidden = "aGlkZGVuLWhpZGRlbg=="
)

var now = time.Now()

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(namespace, name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metaOf(namespace, name), Data: map[string][]byte{}}
	for entry, value := range data {
		s.Data[entry] = []byte(value)
	}
	return s
}

// objects are those of a small installation.
func objects() []client.Object {
	deployment := &appsv1.Deployment{ObjectMeta: metaOf(home, "lockstep-fleet")}
	deployment.Labels = ownLabels
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metaOf(home, "lockstep-webhook-x")}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "lockstep-webhook"}
	service := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"caBundle": "eA=="}, "status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False", "reason": "Down", "message": "m"}}},
	}}
	service.SetGroupVersionKind(apiServiceKind)
	service.SetName("v1alpha1.sync.bindy.firestoned.io")
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metaOf("dns", "web")}
	cluster.Spec.Primary = &v1beta1.RoleConfig{RNDCKey: &v1beta1.RNDCKeyConfig{SecretRef: &v1beta1.RNDCSecretRef{Name: "own"}}}
	instance := &v1beta1.Bind9Instance{ObjectMeta: metaOf("dns", "web-0")}
	instance.Spec.ClusterRef = "web"
	provider := &v1beta1.DNSProvider{ObjectMeta: metaOf("dns", "knot")}
	provider.Spec.RFC2136 = &v1beta1.RFC2136Provider{UpdateKey: v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: "knot"}}}
	provider.Spec.CoreDNS = &v1beta1.CoreDNSProvider{}
	provider.Spec.CoreDNS.Etcd.TLSSecretRef = &v1beta1.ProviderSecret{Name: "tls"}
	provider.Spec.CoreDNS.Etcd.CredentialsSecretRef = &v1beta1.ProviderSecret{Name: "user"}
	record := &v1beta1.ARecord{ObjectMeta: metaOf("dns", "www")}
	record.Generation, record.Status.ObservedGeneration = 3, 2
	record.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	record.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotSelected", Message: "m"}}
	ended := record.DeepCopy()
	ended.Name, ended.Finalizers, ended.DeletionTimestamp = "ended", []string{v1beta1.Finalizer}, new(metav1.NewTime(now))
	verdict := &syncv1.SyncStatus{ObjectMeta: metaOf("dns", "bind9instance.web-0")}
	verdict.ObjectRef.Kind = "Bind9Instance"
	return []client.Object{
		deployment, slice, service, cluster, instance, provider, record, ended, verdict,
		&v1beta1.Bind9GlobalCluster{ObjectMeta: metaOf("", "shared")},
		&coordinationv1.Lease{ObjectMeta: metaOf(home, "lockstep-fleet")},
		secret(home, "lockstep-webhook-tls", map[string]string{"tls.crt": "c", "ca.crt": "b", "tls.key": hidden}),
		secret("dns", "web-0-bindcar-tls", map[string]string{"tls.crt": "s", "tls.key": hidden}),
		secret("dns", "own", map[string]string{"key-name": "k", "secret": hidden}),
		secret("dns", "knot", map[string]string{"name": "not a name", "secret": hidden}),
		secret("dns", "tls", map[string]string{"tls.crt": "no certificate", "tls.key": hidden}),
		secret("dns", "user", map[string]string{"password": hidden}),
		secret("dns", "web-update-keyring", map[string]string{"keys.json": `{"keys":[{"secret":"` + hidden + `"}]}`}),
	}
}

func newSurvey(t *testing.T, o Options, denied ...string) *Survey {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	byField := func(field string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{o.(*syncv1.SyncStatus).Fields()[field]} }
	}
	deny := func(o any) error {
		for _, kind := range denied {
			if strings.Contains(typeName(o), kind) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
			}
		}
		return nil
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects()...).
		WithIndex(&syncv1.SyncStatus{}, syncv1.FieldKind, byField(syncv1.FieldKind)).WithIndex(&syncv1.SyncStatus{}, syncv1.FieldInSync, byField(syncv1.FieldInSync)).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if err := deny(o); err != nil {
					return err
				}
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := deny(list); err != nil {
					return err
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
	server := func(context.Context) (doctor.Server, error) {
		return doctor.Server{Version: "v1.37.1", Clock: now.Add(time.Hour), Local: now}, nil
	}
	return &Survey{Options: o, client: c, server: server}
}

func typeName(o any) string {
	kinds, _ := newScheme()
	if o, ok := o.(client.ObjectList); ok {
		if gvks, _, err := kinds.ObjectKinds(o); err == nil {
			return gvks[0].Kind
		}
	}
	if o, ok := o.(client.Object); ok {
		if gvks, _, err := kinds.ObjectKinds(o); err == nil {
			return gvks[0].Kind
		}
	}
	return ""
}

func TestRead(t *testing.T) {
	f, err := newSurvey(t, Options{System: home, TryIn: "dns"}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if skew := time.Until(f.Now).Round(time.Minute); skew != time.Hour {
		t.Errorf("the time of kube-apiserver is %s away", skew)
	}
	if len(f.Known) < 16 || len(f.KnownMutating.Webhooks) < 4 || len(f.KnownValidating.Webhooks) < 3 {
		t.Errorf("the plugin knows %d definitions, %d and %d webhooks", len(f.Known), len(f.KnownMutating.Webhooks), len(f.KnownValidating.Webhooks))
	}
	if len(f.Deployments.Value) != 1 || len(f.Elsewhere) > 0 || f.Leases[1].Err != nil || !apierrors.IsNotFound(f.Leases[0].Err) {
		t.Errorf("installation: %+v %+v", f.Deployments, f.Leases)
	}
	if s := f.APIService.Value; !s.Exists || string(s.CABundle) != "x" || s.Available.Status != "False" || s.Available.Reason != "Down" || f.AdmissionAPIService.Value.Exists {
		t.Errorf("APIServices: %+v %+v", s, f.AdmissionAPIService)
	}
	if len(f.WebhookEndpoints.Value) != 1 || len(f.APIServerEndpoints.Value) != 0 || !apierrors.IsNotFound(f.Mutating.Err) || f.Admission.Err != nil {
		t.Errorf("admission: %+v %+v %v %v", f.WebhookEndpoints, f.APIServerEndpoints, f.Mutating.Err, f.Admission.Err)
	}
	if len(f.Instances.Value.Items) != 1 || len(f.OutOfSync.Value.Items) != 1 {
		t.Errorf("SyncStatus: %+v %+v", f.Instances, f.OutOfSync)
	}
	if got := f.Sidecars; len(got) != 1 || string(got[0].Value.Certificate) != "s" || got[0].Value.Name != "*.web-0.dns.bindcar.internal" {
		t.Errorf("sidecars: %+v", got)
	}
	problems := map[string]string{}
	for _, k := range f.Keys {
		problem := k.Value.Problem
		if k.Err != nil {
			problem = string(apierrors.ReasonForError(k.Err))
		}
		problems[k.Value.Owner+" "+k.Value.Secret.Name] = problem
	}
	want := map[string]string{
		"Bind9Cluster dns/web own": "", "Bind9Cluster dns/web web-update-keyring": "", "Bind9Cluster dns/web web-transfer-keyring": "NotFound",
		"Bind9GlobalCluster shared shared-update-keyring": "NotFound", "Bind9GlobalCluster shared shared-transfer-keyring": "NotFound",
		"DNSProvider dns/knot knot": `no usable TSIG key in Secret dns/knot: entry "name" must be a domain name of letters, digits, hyphens, underscores, "/" and ":", such as update.example.com`,
		"DNSProvider dns/knot tls":  "tls.crt and tls.key in Secret dns/tls are no certificate with its key",
		"DNSProvider dns/knot user": "no username or no password in Secret dns/user",
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, o := range f.Objects {
		if o.Value.Kind != "ARecord" {
			continue
		}
		at := metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second)).Time
		want := doctor.Objects{Kind: "ARecord", Count: 2}
		key := client.ObjectKey{Namespace: "dns", Name: "www"}
		want.Lagging = []doctor.LaggingObject{{Key: key, Generation: 3, Observed: 2, Changed: at}}
		want.Unready = []doctor.UnreadyObject{{Key: key, Reason: "NotSelected", Message: "m"}}
		if diff := cmp.Diff(want, o.Value); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	}
	if text, err := json.Marshal(f); err != nil || strings.Contains(string(text), hidden) {
		t.Errorf("a fact has a secret, or cannot be encoded: %v", err)
	}
}

// A write of the status is no change.
func TestChangeTime(t *testing.T) {
	at := now.Truncate(time.Second)
	o := &v1beta1.ARecord{ObjectMeta: metaOf("dns", "www")}
	o.CreationTimestamp = metav1.NewTime(at.Add(-time.Hour))
	if got := changeTime(o); !got.Equal(at.Add(-time.Hour)) {
		t.Errorf("created and never changed: %s", got)
	}
	o.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "a", Time: new(metav1.NewTime(at.Add(-time.Minute)))}, {Manager: "b", Subresource: "status", Time: new(metav1.NewTime(at))},
	}
	if got := changeTime(o); !got.Equal(at.Add(-time.Minute)) {
		t.Errorf("changed, and then its status: %s", got)
	}
}

func TestReadOneNamespace(t *testing.T) {
	f, err := newSurvey(t, Options{System: "elsewhere", Namespace: "other", TryIn: "other"}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{home}, f.Elsewhere); diff != "" {
		t.Errorf("where Lockstep is (-want +got):\n%s", diff)
	}
	for _, o := range f.Objects {
		if o.Value.Count > 0 || clusterScoped[o.Value.Kind] || !strings.HasSuffix(o.Request, "in namespace other") {
			t.Errorf("%s: %+v", o.Request, o.Value)
		}
	}
}

// Pages are decoded as kube-apiserver sends them: the last one has no token.
func TestEachObject(t *testing.T) {
	s := newSurvey(t, Options{System: home})
	pages := []string{
		`{"metadata":{"continue":"more"},"items":[{"metadata":{"name":"a","generation":2}},{"metadata":{"name":"b"}}]}`, `{"metadata":{},"items":[{"metadata":{"name":"c"}}]}`,
	}
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if len(pages) == 0 {
				return errors.New("there is no other page")
			}
			page := pages[0]
			pages = pages[1:]
			return json.Unmarshal([]byte(page), list)
		},
	})
	var got []string
	err := s.eachObject(t.Context(), &v1beta1.DNSZoneList{}, func(o client.Object) { got = append(got, fmt.Sprint(o.GetName(), o.GetGeneration())) })
	if diff := cmp.Diff([]string{"a2", "b0", "c0"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadForbidden(t *testing.T) {
	f, err := newSurvey(t, Options{System: home, TryIn: "dns"}, "Secret", "Lease", "DNSZone", "SyncStatus").Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"certificate": f.Serving[0].Err, "key": f.Keys[0].Err, "lease": f.Leases[0].Err, "zones": f.Objects[0].Err, "SyncStatus": f.OutOfSync.Err,
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if f.Objects[0].Request != "list DNSZones" || f.Leases[0].Request != "get lease lockstep-controller in namespace lockstep-system" {
		t.Errorf("requests: %q %q", f.Objects[0].Request, f.Leases[0].Request)
	}
}

func TestReadNoServer(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("connection refused"):                                                true,
		apierrors.NewUnauthorized("who?"):                                               true,
		apierrors.NewForbidden(schema.GroupResource{}, "version", errors.New("no one")): false,
	} {
		s := newSurvey(t, Options{System: home})
		s.server = func(context.Context) (doctor.Server, error) { return doctor.Server{}, err }
		if _, got := s.Read(t.Context()); errors.Is(got, ErrNoServer) != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestDates(t *testing.T) {
	d := &dateRecorder{}
	date := "Tue, 24 Nov 2026 12:00:00 GMT"
	transport := d.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Date": {date}}, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	if _, err := transport.RoundTrip(&http.Request{}); err != nil { //nolint:bodyclose // it is empty
		t.Fatal(err)
	}
	server, local := d.last()
	if server.UTC().Format(http.TimeFormat) != date || time.Since(local) > time.Minute {
		t.Errorf("%s here %s", server, local)
	}
}

// The resources that the kinds are read from are those that kube-apiserver has.
func TestMapper(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := newMapper(scheme)
	for _, want := range []schema.GroupVersionResource{
		{Group: "bindy.firestoned.io", Version: "v1beta1", Resource: "dnszones"}, {Group: "bindy.firestoned.io", Version: "v1beta1", Resource: "aaaarecords"},
		{Group: "sync.bindy.firestoned.io", Version: "v1alpha1", Resource: "syncstatuses"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	} {
		if _, err := mapper.KindFor(want); err != nil {
			t.Error(err)
		}
	}
}
