package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Where everybody may ask for reviews, a forged one learns no more than a user who may write in the namespace that it claims: no
// object of another one, and for what all namespaces share no object at all.
func TestAttack10ForgedReviewNamesNobodyElse(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	name := "forged-" + victim.namespace + ".example"
	victim.apply(dnsZone("secret-zone", name, "clusterRef: "+p.name) + aRecord("secret-record", "secret-zone", "www", "192.0.2.1"))
	victim.kubectl("wait", "--for=condition=Ready", "dnszone/secret-zone", "--timeout=120s")
	requireSilent := func(want, operation, namespace, manifest string) {
		t.Helper()
		var answer string
		kube.Eventually(t, kube.Settle, func(ctx context.Context) (err error) {
			if answer, err = askWebhook(ctx, t, forge(t, operation, namespace, manifest)); err == nil && !strings.Contains(answer, want) {
				err = errors.New("the review is not refused as it should be")
			}
			return err
		})
		for _, secret := range []string{"secret-", victim.namespace + "/"} {
			if strings.Contains(answer, secret) {
				t.Errorf("%s in namespace %q is answered with %q, which a stranger may not know", operation, namespace, answer)
			}
		}
	}
	on := "clusterRef: " + p.name
	requireSilent("a DNSZone of another namespace has this name", "CREATE", attacker.namespace, dnsZone("same", name, on))
	requireSilent("another namespace has a zone above", "CREATE", attacker.namespace, dnsZone("below", "www."+name, on))
	requireSilent("still serves zones", "DELETE", "", fmt.Sprintf("apiVersion: bindy.firestoned.io/v1beta1\nkind: Bind9GlobalCluster\nmetadata: {name: %s, uid: %s}\nspec: {}\nstatus: {observedGeneration: 1}\n", p.name, p.uid))
	var members v1beta1.Bind9InstanceList
	if err := p.List(t.Context(), &members, client.InNamespace(p.name)); err != nil || len(members.Items) != 1 {
		t.Fatalf("%d members, %v", len(members.Items), err)
	}
	member, err := yaml.Marshal(&members.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	requireSilent("is the last primary of zones", "DELETE", p.name, "apiVersion: bindy.firestoned.io/v1beta1\nkind: Bind9Instance\n"+string(member))
}

// forge returns a review of an object in a namespace, as kube-apiserver sends them.
func forge(t *testing.T, operation, namespace, manifest string) string {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(strings.TrimPrefix(manifest, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &head); err != nil {
		t.Fatal(err)
	}
	kind := head.GroupVersionKind()
	request := &admissionv1.AdmissionRequest{
		UID: types.UID("forged"), Operation: admissionv1.Operation(operation), Namespace: namespace, Name: head.Name,
		Kind:     metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Resource: metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"},
	}
	request.UserInfo.Username = "system:admin"
	if object := (runtime.RawExtension{Raw: raw}); operation == "DELETE" {
		request.OldObject = object
	} else {
		request.Object = object
	}
	review := &admissionv1.AdmissionReview{Request: request}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	text, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
