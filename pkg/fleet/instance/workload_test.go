package instance

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// A Service that is made again waits for its former address, which Kubernetes frees after the Service has gone, and takes another if
// somebody else has it meanwhile.
func TestRestoreService(t *testing.T) {
	const former = "10.96.0.7"
	for name, test := range map[string]struct {
		refusals int
		want     string
	}{"free": {0, former}, "free soon": {3, former}, "taken": {1000, ""}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, refused := "none", 0
				c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					var service corev1.Service
					text, err := json.Marshal(o)
					if err := errors.Join(err, json.Unmarshal(text, &service)); err != nil {
						return err
					}
					if service.Spec.ClusterIP != "" && refused < test.refusals {
						refused++
						return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "dns", nil)
					}
					got = service.Spec.ClusterIP
					return nil
				}}).Build()
				w := &workloads{client: c, Options: Options{Children: apply.NewChildren(c)}}
				service := corev1ac.Service("dns", "team").WithSpec(corev1ac.ServiceSpec())
				digest, err := apply.StampDigest(service)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.restoreService(t.Context(), service, digest, former); err != nil || got != test.want {
					t.Errorf("the Service has the address %q after %d refusals, want %q; %v", got, refused, test.want, err)
				}
			})
		})
	}
}
