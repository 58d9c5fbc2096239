package controller

import (
	"net/http"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
)

// What every record of a zone has is in memory once, and the fleet manager keeps no records of zones.
func TestCachedObjectsShareWhatTheyHaveInCommon(t *testing.T) {
	options := cacheOptions(cachehealth.NewMonitor().NewInformer, trimZone)
	labels := func(o client.Object) uintptr {
		o.SetLabels(map[string]string{"zone": "example"})
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		transform := options.DefaultTransform
		for kind, by := range options.ByObject {
			if reflect.TypeOf(kind) == reflect.TypeOf(o) {
				transform = by.Transform
			}
		}
		if _, err := transform(o); err != nil {
			t.Fatal(err)
		}
		if o.GetManagedFields() != nil {
			t.Errorf("%T keeps its field managers", o)
		}
		return reflect.ValueOf(o.GetLabels()).Pointer()
	}
	zone := &v1beta1.DNSZone{}
	zone.Status.Records = []v1beta1.RecordReference{{Name: "www"}}
	first := labels(zone)
	if second, third := labels(&v1beta1.ARecord{}), labels(&v1beta1.TXTRecord{}); first != second || second != third {
		t.Error("each object has labels of its own")
	}
	if len(zone.Status.Records) > 0 {
		t.Error("the zone has its records")
	}
}

// What the cache is made for is known without kube-apiserver, which may have gone away since the process waited for it: a process that ends
// then is kept waiting by its kubelet.
func TestCachedKindsAreKnownWithoutTheServer(t *testing.T) {
	mapper, err := cachehealth.NewMapper(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	for o := range cacheOptions(nil, nil).ByObject {
		if _, err := apiutil.IsObjectNamespaced(o, newScheme(), mapper); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
}
