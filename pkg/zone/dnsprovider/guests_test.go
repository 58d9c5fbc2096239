package dnsprovider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// A provider whose key the primaries do not take, because its namespace has too many, says so, and which zone that concerns; the older
// ones, those of other namespaces and those on other primaries do not.
func TestLeftOut(t *testing.T) {
	var objects []client.Object
	add := func(namespace, name, cluster string, age int) {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9+age), 0))}
		p, z := &v1beta1.DNSProvider{ObjectMeta: meta}, &v1beta1.DNSZone{ObjectMeta: meta}
		p.Spec.Secondaries = &v1beta1.SecondariesProvider{TransferKey: &v1beta1.ProviderKey{}}
		z.Spec.ZoneName, z.Spec.ClusterRef, z.Spec.ProviderRefs = name+".example", cluster, []v1beta1.ProviderReference{{Name: name}}
		objects = append(objects, p, z)
	}
	for n := range membership.GuestsOfNamespace + 2 {
		add("team", fmt.Sprintf("p%d", n), "shared", n)
		add("home", fmt.Sprintf("p%d", n), "shared", n)
	}
	add("team", "unused", "", 0)
	add("team", "elsewhere", "other", 20)
	add("neighbor", "p", "shared", 30)
	for _, name := range []string{"shared", "other"} {
		global := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		global.Spec.Namespace = "servers"
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "servers", Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: name, UID: types.UID(name), Controller: new(true),
		}}}}
		i.Spec.ClusterRef, i.Spec.Role = name, v1beta1.RolePrimary
		objects = append(objects, global, i)
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), systemNamespace: "home"}
	for _, o := range objects {
		p, is := o.(*v1beta1.DNSProvider)
		if !is || p.Namespace == "home" {
			continue
		}
		why, err := r.leftOut(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		isLeftOut := p.Namespace == "team" && (p.Name == "p8" || p.Name == "p9")
		if (why != "") != isLeftOut || isLeftOut && (!strings.Contains(why, "DNSZone "+p.Name) || !strings.Contains(why, "8 DNSProviders") || !strings.Contains(why, "one of 10")) {
			t.Errorf("%s: %q", p.UID, why)
		}
		next := status.Provider(p.Status, status.ProviderFacts{LeftOut: why}, time.Now())
		if ready := next.Conditions[0]; (ready.Reason == status.TooManyProviders) != isLeftOut {
			t.Errorf("%s: %+v", p.UID, ready)
		}
	}
}
