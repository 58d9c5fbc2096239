package instance

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// fixedAuthority is an authority that stays the same.
type fixedAuthority struct{ state certs.State }

func (a fixedAuthority) State(context.Context) (certs.State, error) { return a.state, nil }

// An instance with which something is wrong keeps its sidecars' certificate: its servers go on, for months if nobody cares.
func TestCertificateOfAnInstanceWithAProblem(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web", UID: "web"}}
	instance.Spec.RNDCKey = &v1beta1.RNDCKeyConfig{SecretRef: &v1beta1.RNDCSecretRef{Name: "deleted"}}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(instance).Build()
	children := apply.NewChildren(kube)
	w := newWorkloads(kube, nil, Options{
		Children: children, Authority: fixedAuthority{mtls.NewAuthority(t)}, Keys: &keyrotation.Rotator{Client: kube, Children: children, Cache: keyrotation.NewCache(kube)},
	})
	if _, err := w.ensure(t.Context(), instance, inventory.Cluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("without its key: %v", err)
	}
	var secret corev1.Secret
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "dns", Name: named.CertificateSecretName("web")}, &secret); err != nil {
		t.Errorf("the instance has no certificate: %v", err)
	}
}

// An instance that is made again at once gets a certificate of its own, whatever the one before had.
func TestCertificateIsTheInstances(t *testing.T) {
	kube := fake.NewClientBuilder().Build()
	w := newWorkloads(kube, nil, Options{Children: apply.NewChildren(kube), Authority: fixedAuthority{mtls.NewAuthority(t)}})
	for _, uid := range []types.UID{"first", "second"} {
		instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web", UID: uid}}
		if err := w.ensureCertificate(t.Context(), &named.Workload{Instance: instance}); err != nil {
			t.Fatal(err)
		}
		var secret corev1.Secret
		if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "dns", Name: named.CertificateSecretName("web")}, &secret); err != nil {
			t.Fatalf("the %s instance has no certificate: %v", uid, err)
		}
		if owner := metav1.GetControllerOf(&secret); owner == nil || owner.UID != uid {
			t.Errorf("the certificate of the %s instance is %+v's", uid, owner)
		}
		if err := kube.Delete(t.Context(), &secret); err != nil { // as the garbage collector does
			t.Fatal(err)
		}
	}
}
