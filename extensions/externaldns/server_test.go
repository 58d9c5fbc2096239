package externaldns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// protocol is a server, and a client that speaks as external-dns does. What Kubernetes does is tested on a cluster.
type protocol struct {
	*testing.T
	server      *webhookServer
	url         string
	client      client.Client
	events      chan string
	beforeWrite func() error
}

func newProtocol(t *testing.T, objects ...client.Object) *protocol {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	p := &protocol{T: t, beforeWrite: func() error { return nil }}
	mapper := testrestmapper.TestOnlyStaticRESTMapper(scheme)
	p.client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := p.beforeWrite(); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := p.beforeWrite(); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}).Build()
	recorder := events.NewFakeRecorder(10_000)
	p.events = recorder.Events
	kept := &store{client: p.client, owner: "external-dns", owned: true}
	p.server = &webhookServer{store: kept, notices: newNotices(kept, recorder), metrics: newServerMetrics(), filter: domainFilter{[]string{}, []string{}}}
	s := httptest.NewServer(p.server.handler())
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// request returns the answer to one request, and fails the test for a status that would end external-dns.
func (p *protocol) request(method, path string, body any) (int, []byte) {
	p.Helper()
	text, raw := body.([]byte)
	if !raw && body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			p.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(p.Context(), method, p.url+path, bytes.NewReader(text))
	if err != nil {
		p.Fatal(err)
	}
	request.Header.Set("Accept", mediaType)
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}
	if code := response.StatusCode; code >= 300 && (code < 500 || code > 510) {
		p.Errorf("%s %s is answered with %d, which ends external-dns", method, path, code)
	}
	if response.StatusCode == http.StatusOK && response.Header.Get("Content-Type") != mediaType {
		p.Errorf("%s %s has media type %q", method, path, response.Header.Get("Content-Type"))
	}
	return response.StatusCode, answer
}

// sync does what external-dns does at an interval with these desired endpoints, all of which are new.
func (p *protocol) sync(desired ...*v1alpha1.Endpoint) int {
	p.Helper()
	_, answer := p.request("POST", "/adjustendpoints", desired)
	var adjusted []*v1alpha1.Endpoint
	if err := json.Unmarshal(answer, &adjusted); err != nil {
		p.Fatal(err)
	}
	code, _ := p.request("POST", "/records", planChanges{Create: adjusted})
	return code
}

// declared returns what is stored, by object.
func (p *protocol) declared() map[string]string {
	p.Helper()
	list := &v1alpha1.DNSEndpointList{}
	if err := p.client.List(p.Context(), list); err != nil {
		p.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range list.Items {
		var lines []string
		for _, e := range o.Spec.Endpoints {
			lines = append(lines, e.DNSName+" "+e.RecordType+" "+strings.Join(e.Targets, ","))
		}
		all[o.Namespace+"/"+o.Name] = strings.Join(lines, ", ")
	}
	return all
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-of-a-service"}}
}

func TestProtocol(t *testing.T) {
	p := newProtocol(t, service("shop", "web"), service("blog", "web"))
	if code, answer := p.request("GET", "/", nil); code != 200 || strings.TrimSpace(string(answer)) != `{"include":[],"exclude":[]}` {
		t.Errorf("GET /: %d %s", code, answer)
	}
	if code, answer := p.request("GET", "/records", nil); code != 200 || strings.TrimSpace(string(answer)) != "[]" {
		t.Errorf("GET /records: %d %s", code, answer)
	}
	code := p.sync(found("service/shop/web", "www.example.com.", "A", 60, "192.0.2.1"), found("service/blog/web", "www.example.com", "A", 0, "192.0.2.2"),
		found("service/shop/web", "bad.example.com", "A", 0, "no address"), found("crd/shop/x", "x.example.com", "A", 0, "192.0.2.3"),
		found("service/gone/web", "gone.example.com", "A", 0, "192.0.2.4"))
	if code != http.StatusNoContent {
		t.Errorf("POST /records: %d, want 204", code)
	}
	want := map[string]string{
		"shop/external-dns.service.web": "www.example.com. A 192.0.2.1", "blog/external-dns.service.web": "www.example.com. A 192.0.2.2",
	}
	if diff := cmp.Diff(want, p.declared()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if event := <-p.events; !strings.Contains(event, "Warning RecordNotServed") || !strings.Contains(event, "bad.example.com") {
		t.Errorf("Event %q", event)
	}
	o := &v1alpha1.DNSEndpoint{}
	if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "external-dns.service.web"}, o); err != nil {
		t.Fatal(err)
	}
	if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Kind != "Service" || o.OwnerReferences[0].UID == "" {
		t.Errorf("owner references %v", o.OwnerReferences)
	}
	_, answer := p.request("GET", "/records", nil)
	var records []*v1alpha1.Endpoint
	if err := json.Unmarshal(answer, &records); err != nil || len(records) != 2 {
		t.Fatalf("records %s: %v", answer, err)
	}
	if code, _ := p.request("POST", "/records", planChanges{Delete: records}); code != http.StatusNoContent {
		t.Errorf("deletion: %d", code)
	}
	if diff := cmp.Diff(map[string]string{}, p.declared()); diff != "" {
		t.Errorf("stored after the deletion (-want +got):\n%s", diff)
	}
}

// Whatever comes is answered with a status that leaves external-dns running.
func TestProtocolNeverEndsExternalDNS(t *testing.T) {
	p := newProtocol(t, service("shop", "web"))
	for _, path := range []string{"/records", "/adjustendpoints"} {
		for name, body := range map[string][]byte{
			"nothing": nil, "no JSON": []byte("{"), "another type": []byte(`"x"`), "null": []byte("null"), "nulls": []byte("[null]"),
			"numbers": []byte(`{"create":[{"recordTTL":1e99}]}`), "nested": []byte(strings.Repeat("[", 20000)), "too large": bytes.Repeat([]byte(" "), maxBody+1),
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				s := *p
				s.T = t
				s.request("POST", path, body)
			})
		}
	}
	for name, err := range map[string]error{
		"refused":   apierrors.NewForbidden(schema.GroupResource{Resource: "dnsendpoints"}, "x", errors.New("admission: no")),
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "DNSEndpoint"}, "x", nil),
		"too large": apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large"),
		"busy":      apierrors.NewTooManyRequests("busy", 1), "away": errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			s := *p
			s.T = t
			p.beforeWrite = func() error { return err }
			code := s.sync(found("service/shop/web", "www.example.com", "A", 0, "192.0.2.1"))
			refused := name != "busy" && name != "away"
			if refused != (code == http.StatusNoContent) {
				t.Errorf("answered with %d", code)
			}
		})
	}
}

// A record that admission refuses, such as an alias of a zone itself, does not keep the others of its source object from being stored.
func TestRefusedRecordLeavesTheOthers(t *testing.T) {
	p := newProtocol(t, service("shop", "web"))
	applied := 0
	p.beforeWrite = func() error {
		if applied++; applied > 1 {
			return nil
		}
		at := field.NewPath("spec", "endpoints").Index(0).Child("dnsName")
		return apierrors.NewInvalid(schema.GroupKind{Kind: "DNSEndpoint"}, "x", field.ErrorList{field.Invalid(at, "example.com", "a CNAME cannot stand there")})
	}
	if code := p.sync(found("service/shop/web", "example.com", "CNAME", 0, "lb.cloud.test"), found("service/shop/web", "www.example.com", "A", 0, "192.0.2.1")); code != http.StatusNoContent {
		t.Errorf("answered with %d", code)
	}
	if diff := cmp.Diff(map[string]string{"shop/external-dns.service.web": "www.example.com. A 192.0.2.1"}, p.declared()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if event := <-p.events; !strings.Contains(event, "a CNAME cannot stand there") {
		t.Errorf("Event %q", event)
	}
}

// What others have put into a stored object stays there when its endpoints change. The reference to an owner of the same name that is no
// more is replaced.
func TestChangeKeepsWhatIsOthers(t *testing.T) {
	stored := storedObject("service/shop/web", endpoint("a.example.com", "A", "192.0.2.1"))
	stored.Labels["team"], stored.Finalizers = "shop", []string{"example.com/theirs"}
	stored.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "1"}, {APIVersion: "v1", Kind: "Service", Name: "web", UID: "former"},
	}
	owner := service("shop", "web")
	owner.UID = "present"
	p := newProtocol(t, owner, &stored)
	if code := p.sync(found("service/shop/web", "a.example.com", "A", 0, "192.0.2.2")); code != http.StatusNoContent {
		t.Errorf("answered with %d", code)
	}
	o := &v1alpha1.DNSEndpoint{}
	if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(&stored), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"shop/external-dns.service.web": "a.example.com. A 192.0.2.2"}, p.declared()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if len(o.OwnerReferences) != 2 || o.OwnerReferences[0].UID != "1" || o.OwnerReferences[1].UID != "present" || o.Labels["team"] != "shop" || len(o.Finalizers) != 1 {
		t.Errorf("its metadata is %v", o.ObjectMeta)
	}
}

// An object that the server did not make is neither changed nor deleted, whatever it is called.
func TestForeignObjectsStay(t *testing.T) {
	foreign := storedObject("service/shop/web", endpoint("a.example.com", "A", "192.0.2.1"))
	foreign.Labels = nil
	p := newProtocol(t, service("shop", "web"), &foreign)
	if code := p.sync(found("service/shop/web", "b.example.com", "A", 0, "192.0.2.2")); code != http.StatusNoContent {
		t.Errorf("answered with %d", code)
	}
	if event := <-p.events; !strings.Contains(event, "exists already") {
		t.Errorf("Event %q", event)
	}
	p.request("POST", "/records", planChanges{Delete: []*v1alpha1.Endpoint{found("service/shop/web", "a.example.com", "A", 0)}})
	if diff := cmp.Diff(map[string]string{"shop/external-dns.service.web": "a.example.com. A 192.0.2.1"}, p.declared()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// So is one among many, for which all are listed, and one that is created after that was read.
func TestForeignObjectsAmongManyStay(t *testing.T) {
	var objects []client.Object
	var desired []*v1alpha1.Endpoint
	want := map[string]string{}
	for i := range 3 * singleReads {
		source, name := fmt.Sprintf("service/shop/web-%d", i), fmt.Sprintf("web-%d.example.com", i)
		objects = append(objects, service("shop", fmt.Sprintf("web-%d", i)))
		desired = append(desired, found(source, name, "A", 0, "192.0.2.2"))
		want[fmt.Sprintf("shop/external-dns.service.web-%d", i)] = name + ". A 192.0.2.2"
	}
	foreign := storedObject("service/shop/web-58", endpoint("a.example.com", "A", "192.0.2.1"))
	foreign.Labels = nil
	late := storedObject("service/shop/web-9", endpoint("b.example.com", "A", "192.0.2.1"))
	late.Labels = nil
	want["shop/external-dns.service.web-58"], want["shop/external-dns.service.web-9"] = "a.example.com. A 192.0.2.1", "b.example.com. A 192.0.2.1"
	p := newProtocol(t, append(objects, &foreign)...)
	p.server.store.owned = true
	var applied atomic.Int64
	p.beforeWrite = func() error { // All are listed by then, and the last in the order of names is not begun.
		if applied.Add(1) == singleReads+5 {
			return p.client.Create(t.Context(), &late, client.FieldOwner("somebody"))
		}
		return nil
	}
	if code := p.sync(desired...); code != http.StatusNoContent {
		t.Errorf("answered with %d", code)
	}
	if diff := cmp.Diff(want, p.declared()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	var stored v1alpha1.DNSEndpointList
	if err := p.client.List(t.Context(), &stored, client.MatchingLabels{ownerLabel: "external-dns"}); err != nil {
		t.Fatal(err)
	}
	for _, o := range stored.Items {
		if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Kind != "Service" {
			t.Errorf("%s is owned by %v", o.Name, o.OwnerReferences)
		}
	}
}

func TestNamespacesAndDryRun(t *testing.T) {
	p := newProtocol(t, service("shop", "web"), service("blog", "web"))
	p.server.store.namespaces = []string{"shop"}
	p.server.dryRun = true
	desired := []*v1alpha1.Endpoint{found("service/shop/web", "a.example.com", "A", 0, "192.0.2.1"), found("service/blog/web", "b.example.com", "A", 0, "192.0.2.2")}
	p.sync(desired...)
	if diff := cmp.Diff(map[string]string{}, p.declared()); diff != "" {
		t.Errorf("stored by a dry run (-want +got):\n%s", diff)
	}
	p.server.dryRun = false
	p.sync(desired...)
	if diff := cmp.Diff(map[string]string{"shop/external-dns.service.web": "a.example.com. A 192.0.2.1"}, p.declared()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	for address, valid := range map[string]bool{"localhost:8888": true, "127.0.0.1:1": true, "[::1]:8888": true, ":8888": false, "0.0.0.0:8888": false, "10.0.0.1:8888": false, "x": false} {
		o := NewOptions()
		if o.Address = address; (o.Validate() == nil) != valid {
			t.Errorf("--bind-address=%s: %v", address, o.Validate())
		}
	}
	o := NewOptions()
	o.Owner, o.Namespaces, o.WaitPropagated = "A.b", []string{"x/y"}, maxWait+1
	for _, flag := range []string{"--owner", "--namespaces", "--wait-propagated"} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not refused: %v", flag, err)
		}
	}
}

// Thousands of Services at once, of each of which one record is wrong, are stored, and asked for again without a write.
func TestManyServices(t *testing.T) {
	const count = 5000
	var objects []client.Object
	var desired []*v1alpha1.Endpoint
	for i := range count {
		name := fmt.Sprintf("web-%d", i)
		objects = append(objects, service("shop", name))
		desired = append(desired, found("service/shop/"+name, name+".example.com", "A", 0, "192.0.2.1"), found("service/shop/"+name, name+".example.com", "AAAA", 0, "192.0.2.1"))
	}
	p := newProtocol(t, objects...)
	var applied atomic.Int64
	p.beforeWrite = func() error { applied.Add(1); return nil }
	for code := 0; code != http.StatusNoContent; { // On a slow machine the answer is to come again.
		code = p.sync(desired...)
	}
	if stored := len(p.declared()); stored != count || applied.Load() != count {
		t.Errorf("%d objects are stored by %d writes, want %d", stored, applied.Load(), count)
	}
	if code := p.sync(desired...); code != http.StatusNoContent || applied.Load() != count {
		t.Errorf("asked for again, answered with %d after %d writes", code, applied.Load()-count)
	}
}

// What others put on a DNSEndpoint stays when its records change, also an owner that comes at that moment.
func TestStoredKeepsOthersMetadata(t *testing.T) {
	stored := storedObject("service/shop/web", endpoint("old.example.com", "A", "192.0.2.1"))
	stored.UID = "stored"
	stored.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	stored.Labels["team"] = "shop"
	stored.Finalizers = []string{"example.com/keep"}
	stored.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}}
	p := newProtocol(t, service("shop", "web"), &stored)
	key := client.ObjectKeyFromObject(&stored)
	p.beforeWrite = func() error {
		p.beforeWrite = func() error { return nil }
		current := &v1alpha1.DNSEndpoint{}
		if err := p.client.Get(t.Context(), key, current); err != nil {
			return err
		}
		current.OwnerReferences = append(current.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: "b"})
		return p.client.Update(t.Context(), current)
	}
	if code := p.sync(found("service/shop/web", "www.example.com", "A", 0, "192.0.2.2")); code != http.StatusNoContent {
		t.Errorf("answered with %d", code)
	}
	after := &v1alpha1.DNSEndpoint{}
	if err := p.client.Get(t.Context(), key, after); err != nil {
		t.Fatal(err)
	}
	var owners []string
	for _, r := range after.OwnerReferences {
		owners = append(owners, r.Kind+" "+r.Name)
	}
	got := map[string]any{"annotation": after.Annotations[corev1.LastAppliedConfigAnnotation], "label": after.Labels["team"], "finalizers": after.Finalizers, "owners": owners,
		"records": p.declared()["shop/"+after.Name]}
	want := map[string]any{"annotation": "{}", "label": "shop", "finalizers": []string{"example.com/keep"}, "owners": []string{"ConfigMap a", "ConfigMap b", "Service web"},
		"records": "old.example.com. A 192.0.2.1, www.example.com. A 192.0.2.2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a change of records (-want +got):\n%s", diff)
	}
}
