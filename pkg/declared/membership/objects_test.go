package membership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// startOfTest is when objects of age 0 were created.
var startOfTest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// object returns metadata whose age in seconds orders the objects of a test: a greater age is older.
func object(name string, age int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID("uid-" + name), Generation: 1,
		Labels:            map[string]string{"zone": "example.com"},
		CreationTimestamp: metav1.NewTime(startOfTest.Add(-time.Duration(age) * time.Second)),
	}
}

func aRecord(object metav1.ObjectMeta, name string) *v1beta1.ARecord {
	return &v1beta1.ARecord{ObjectMeta: object, Spec: v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: name}}}
}

func exampleZone() *v1beta1.DNSZone {
	return &v1beta1.DNSZone{
		ObjectMeta: object("example-com", 1000),
		Spec: v1beta1.DNSZoneSpec{
			ZoneName: "Example.com",
			RecordsFrom: []v1beta1.RecordSource{
				{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "example.com"}}},
			},
		},
	}
}

// endpointOf returns a DNSEndpoint of a namespace that consents to zones of others.
func endpointOf(namespace, zones string) *v1alpha1.DNSEndpoint {
	return &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "e", Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: zones},
	}}
}
