package keyrotation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// guest is a provider with secondaries, the Secret with its key, and a zone that names it and lives on a cluster.
func guest(namespace, name, cluster string, age int) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9+age), 0))}
	p := &v1beta1.DNSProvider{ObjectMeta: meta}
	p.Spec.Secondaries = &v1beta1.SecondariesProvider{TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name}}}
	z := &v1beta1.DNSZone{ObjectMeta: meta}
	z.Spec.ZoneName, z.Spec.ClusterRef, z.Spec.ProviderRefs = name+".example", cluster, []v1beta1.ProviderReference{{Name: name}}
	return []client.Object{p, z, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{
		"name": []byte(name + "." + namespace + ".secondary.lockstep"), "secret": []byte("c2VjcmV0"),
	}}}
}

func instanceOf(cluster string, role v1beta1.ServerRole) *v1beta1.Bind9Instance {
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "servers", Name: cluster + "-" + string(role), OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: cluster, UID: types.UID(cluster), Controller: new(true),
	}}}}
	i.Spec.ClusterRef, i.Spec.Role = cluster, role
	return i
}

// The guests of a ring are the providers of zones that its primaries serve, with keys of their own names, and no others.
func TestGuestsOfARing(t *testing.T) {
	global := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "shared"}}
	global.Spec.Namespace = "servers"
	elsewhere := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}}
	elsewhere.Spec.Namespace = "servers"
	followers := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "followers", UID: "followers"}}
	followers.Spec.Namespace = "servers"
	thief := guest("thief", "isp", "shared", 5)
	thief[2].(*corev1.Secret).Data["name"] = []byte("isp.team.secondary.lockstep")
	stranger := guest("stranger", "isp", "shared", 6)
	stranger[1].(*v1beta1.DNSZone).Namespace = "third" // It names a provider of another namespace.
	keyless := guest("team", "keyless", "shared", 7)[:2]
	objects := slices.Concat(guest("team", "isp", "shared", 1), guest("team", "elsewhere", "other", 2), guest("alone", "isp", "", 3), guest("lockstep-system", "isp", "shared", 4),
		thief, stranger, keyless, guest("led", "isp", "followers", 8), []client.Object{global, elsewhere, followers, instanceOf("followers", v1beta1.RoleSecondary), instanceOf("shared", v1beta1.RolePrimary), instanceOf("other", v1beta1.RoleSecondary), instanceOf("other", v1beta1.RolePrimary)})
	for n := range membership.GuestsOfNamespace + 2 {
		objects = append(objects, guest("greedy", fmt.Sprintf("p%d", n), "shared", 10+n)...)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	p := &ensurePass{
		Rotator: &Rotator{Client: c, Cache: NewCache(c), Controller: client.ObjectKey{Namespace: "lockstep-system", Name: "lockstep-controller"}, SystemNamespace: "lockstep-system"},
		owner:   Owner{Object: global, Namespace: "servers"},
	}
	keys, err := p.guestKeys(t.Context(), named.KeyTransfer, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range keys {
		names = append(names, strings.TrimSuffix(k.Name, ".secondary.lockstep."))
	}
	want := []string{"isp.team"}
	for n := range membership.GuestsOfNamespace {
		want = append(want, fmt.Sprintf("p%d.greedy", n))
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("guests %q, want %q", names, want)
	}
	p.owner.Object = followers
	if keys, err := p.guestKeys(t.Context(), named.KeyTransfer, nil); err != nil || len(keys) > 0 {
		t.Errorf("guests of a cluster without primaries: %v, %v", keys, err)
	}
	p.owner.Object = global
	if keys, err := p.guestKeys(t.Context(), named.KeyUpdate, nil); err != nil || len(keys) > 0 {
		t.Errorf("guests of the update keys: %v, %v", keys, err)
	}
}
