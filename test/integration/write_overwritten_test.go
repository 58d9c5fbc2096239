package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// inventedStatus is a status that says something false in our name. To that of a DNSEndpoint others may add conditions of their own.
func inventedStatus(o client.Object) []byte {
	condition := func(kind, status string) string {
		return `{"type": "` + kind + `", "status": "` + status + `", "reason": "Invented", "message": "another operator's", "lastTransitionTime": "2026-11-01T00:00:00Z"}`
	}
	conditions := []string{condition("Ready", "Unknown")}
	if _, shared := o.(*v1alpha1.DNSEndpoint); !shared {
		conditions = append(conditions, condition("Available", "True"))
	}
	return []byte(`{"status": {"observedGeneration": 99, "failureReason": "Invented", "conditions": [` + strings.Join(conditions, ", ") + `]}}`)
}

// A status that somebody else has overwritten is put right, of every kind.
func writeOverwritten(f *fixture) {
	endpoint := &v1alpha1.DNSEndpoint{ObjectMeta: f.meta("overwritten", nil)}
	endpoint.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: "app.overwritten.example", RecordType: "A", Targets: []string{"192.0.2.1"}}}
	alone := &v1beta1.Bind9Instance{ObjectMeta: f.meta("overwritten", nil)}
	alone.Spec.Role, alone.Spec.ClusterRef = v1beta1.RoleSecondary, "nowhere"
	provider := &v1beta1.DNSProvider{ObjectMeta: f.meta("overwritten", nil)}
	provider.Spec.Secondaries = &v1beta1.SecondariesProvider{
		Servers:     []v1beta1.ProviderServer{{Address: "192.0.2.1"}},
		TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: "nowhere"}},
	}
	global := &v1beta1.ClusterBind9Provider{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	global.Spec.Namespace = f.namespace
	objects := append(f.everyKind(), endpoint, alone, provider, global, &v1beta1.Bind9Cluster{ObjectMeta: f.meta("overwritten", nil)})
	f.create(objects...)
	f.Cleanup(func() { _ = f.client.Delete(context.WithoutCancel(f.Context()), global) })
	f.waitServed("app.overwritten.example", "A", "192.0.2.1")
	objects = append(objects, &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)})

	truth := make([]map[string]any, len(objects))
	for i, o := range objects {
		kube.Eventually(f, kube.Settle, func(ctx context.Context) (err error) {
			truth[i], err = f.storedStatus(ctx, o)
			if err == nil && truth[i]["conditions"] == nil {
				err = errors.New("there is no status")
			}
			return err
		})
	}
	f.waitQuiet(1, objects...)
	for i, o := range objects {
		var err error
		if truth[i], err = f.storedStatus(f.Context(), o); err != nil {
			f.Fatal(err)
		}
		if err := f.client.Status().Patch(f.Context(), o, client.RawPatch(types.MergePatchType, inventedStatus(o)), client.FieldOwner("another")); err != nil {
			f.Fatalf("%T: %v", o, err)
		}
	}
	times := cmpopts.IgnoreMapEntries(func(name string, _ any) bool {
		return name == "lastTransitionTime" || name == "lastSyncTime" || name == "phaseSince" || name == "serial"
	})
	for i, o := range objects {
		began := time.Now()
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			now, err := f.storedStatus(ctx, o)
			if diff := cmp.Diff(truth[i], now, times); err == nil && diff != "" {
				err = fmt.Errorf("the status of %T %s (-want +got):\n%s", o, o.GetName(), diff)
			}
			return err
		})
		f.Logf("%T: %s", o, time.Since(began).Round(time.Millisecond))
	}
	f.waitQuiet(1, objects...)
}

// storedStatus returns an object's status as kube-apiserver has it.
func (f *fixture) storedStatus(ctx context.Context, o client.Object) (map[string]any, error) {
	kind, err := apiutil.GVKForObject(o, f.client.Scheme())
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), u); err != nil {
		return nil, err
	}
	s, _ := u.Object["status"].(map[string]any)
	return s, nil
}
