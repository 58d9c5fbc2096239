package subject

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// A tool that finds what it has applied by labels or annotations does not find SyncStatuses, and one that builds a tree from owner references
// sees them below their objects.
func TestSyncStatusIsNoUsersObject(t *testing.T) {
	labels := map[string]string{
		"app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "shop-1.0", "argocd.argoproj.io/instance": "shop",
		"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system", "helm.toolkit.fluxcd.io/name": "shop",
		"kapp.k14s.io/app": "1", "applyset.kubernetes.io/part-of": "applyset-x", "cli-utils.sigs.k8s.io/inventory-id": "x", "objectset.rio.cattle.io/hash": "x",
		"app.kubernetes.io/name": "www", "zone": "example",
	}
	meta := metav1.ObjectMeta{
		Namespace: "dns", Name: "www", UID: "4fd2bb0d-96bb-4f5c-9d4b-6cc1a8d4f0a7", Labels: labels, Finalizers: []string{v1beta1.Finalizer},
		Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:bindy.firestoned.io/ARecord:dns/www"},
	}
	for _, kind := range Kinds() {
		s := New(&meta, kind.Kind)
		if want := map[string]string{"app.kubernetes.io/name": "www", "zone": "example"}; !cmp.Equal(s.Labels, want) {
			t.Errorf("%s has the labels %v", kind.Kind, s.Labels)
		}
		if len(s.Annotations) > 0 || len(s.Finalizers) > 0 || len(s.ManagedFields) > 0 {
			t.Errorf("%s has %+v", kind.Kind, s.ObjectMeta)
		}
		want := []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: "www", UID: meta.UID}}
		if diff := cmp.Diff(want, s.OwnerReferences); diff != "" {
			t.Error(diff)
		}
	}
	if len(labels) != 13 {
		t.Error("the object's own labels have changed")
	}
	few := metav1.ObjectMeta{Labels: map[string]string{"zone": "example"}}
	if got := LabelsOf(&few); reflect.ValueOf(got).Pointer() != reflect.ValueOf(few.Labels).Pointer() {
		t.Error("labels are copied although all of them stay") // There are as many as objects.
	}
}

// The UID of a SyncStatus is a UID, not that of any object, and the same one in all replicas.
func TestOwnUID(t *testing.T) {
	format := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	known := map[types.UID]bool{}
	for _, of := range []types.UID{"a", "b", "4fd2bb0d-96bb-4f5c-9d4b-6cc1a8d4f0a7"} {
		uid := ownUID(of)
		if !format.MatchString(string(uid)) || known[uid] || uid != ownUID(of) {
			t.Errorf("%q has the UID %q", of, uid)
		}
		known[uid] = true
	}
	if ownUID("") != "" {
		t.Error("what has no UID got one")
	}
}

// All kinds have the API version that they are stored with.
func TestDescribedVersion(t *testing.T) {
	if got := Describe("DNSEndpoint", "dns", "shop", "1", 1).ObjectRef.APIVersion; got != v1alpha1.GroupVersion.String() {
		t.Error(got)
	}
	if got := Describe("ARecord", "dns", "www", "1", 1).ObjectRef.APIVersion; got != v1beta1.GroupVersion.String() {
		t.Error(got)
	}
}

func TestParseName(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, object string
		ok           bool
	}{
		"arecord.www":             {"ARecord", "www", true},
		"arecord.www.example.com": {"ARecord", "www.example.com", true},
		"dnszone.example-com":     {"DNSZone", "example-com", true},
		"bind9cluster.c":          {"Bind9Cluster", "c", true},
		"ARecord.www":             {},
		"pod.www":                 {},
		"arecord.":                {},
		"arecord":                 {},
		"":                        {},
	} {
		kind, object, ok := ParseName(name)
		if kind.Kind != tc.kind || object != tc.object || ok != tc.ok {
			t.Errorf("ParseName(%q) = %q, %q, %v, want %q, %q, %v", name, kind.Kind, object, ok, tc.kind, tc.object, tc.ok)
		}
		if ok && Name(kind.Kind, object) != name {
			t.Errorf("Name(%q, %q) = %q, want %q", kind.Kind, object, Name(kind.Kind, object), name)
		}
	}
}
