package keyrotation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A key that is replaced takes the place of the entries of the former one, and leaves alone what others have put on the Secret. A Secret that
// has changed since it was read is not written.
func TestReplacedKeyKeepsOthersMetadata(t *testing.T) {
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: "key", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}, Labels: map[string]string{"team": "dns"},
		Finalizers:      []string{"example.com/keep"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}},
	}, Data: map[string][]byte{"former": []byte("x"), "secret": []byte("x")}}
	kube := fake.NewClientBuilder().WithObjects(stored).Build()
	read := func() *corev1.Secret {
		secret := &corev1.Secret{}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(stored), secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	p := &ensurePass{Rotator: &Rotator{Client: kube}}
	before := read()
	if err := p.patchSecret(t.Context(), read(), map[string][]byte{"secret": []byte("y")}); err != nil {
		t.Fatal(err)
	}
	after := read()
	if diff := cmp.Diff(map[string][]byte{"secret": []byte("y")}, after.Data); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := p.patchSecret(t.Context(), before.DeepCopy(), map[string][]byte{"secret": []byte("z")}); !apierrors.IsConflict(err) {
		t.Errorf("a Secret that has changed is written: %v", err)
	}
	after.ResourceVersion = before.ResourceVersion
	if diff := cmp.Diff(before.ObjectMeta, after.ObjectMeta); diff != "" {
		t.Errorf("metadata (-before +after):\n%s", diff)
	}
}
