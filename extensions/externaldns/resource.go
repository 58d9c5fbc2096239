package externaldns

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

const (
	// ownerLabel on a DNSEndpoint names the external-dns for which it was made, by the flag --owner.
	ownerLabel = v1beta1.GroupName + "/external-dns"
	// sourceAnnotation on a DNSEndpoint names the object of which external-dns made its endpoints: kind/namespace/name.
	sourceAnnotation = v1beta1.GroupName + "/source"
	// resourceLabel is the label of an endpoint in which external-dns names that object.
	resourceLabel = "resource"
	// endpointSource is the kind of a resource that is a DNSEndpoint itself.
	endpointSource = "crd"
)

// resource names a source object as external-dns does: kind/namespace/name.
type resource struct{ kind, namespace, name string }

func (r resource) String() string { return r.kind + "/" + r.namespace + "/" + r.name }

// resourceOf returns the source object of an endpoint that external-dns sent. What adjustEndpoints has returned has it as its
// setIdentifier, too, which survives where labels do not.
func resourceOf(e *v1alpha1.Endpoint) (resource, error) {
	return parseResource(cmp.Or(e.Labels[resourceLabel], e.SetIdentifier))
}

func parseResource(text string) (resource, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return resource{}, fmt.Errorf("label %s is %.80q, and not kind/namespace/name: the record has no source object in a namespace", resourceLabel, text)
	}
	r := resource{parts[0], parts[1], parts[2]}
	if len(validation.IsDNS1123Label(strings.ToLower(r.kind))) > 0 || len(validation.IsDNS1123Label(r.namespace)) > 0 || len(validation.IsDNS1123Subdomain(r.name)) > 0 {
		return resource{}, fmt.Errorf("label %s is %.80q, which names no object", resourceLabel, text)
	}
	return r, nil
}

// objectName returns the name of the DNSEndpoint of a source object: the owner, the kind and the name. Owner and kind have no dots,
// so no two source objects share a name.
func (r resource) objectName(owner string) string {
	name := owner + "." + strings.ToLower(r.kind) + "." + r.name
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-17], "-.") + "-" + hex.EncodeToString(sum[:8])
}

// sourceOf returns the source object of a stored DNSEndpoint; ok is false for one that is not as this package makes them.
func sourceOf(o metav1.Object, owner string) (r resource, ok bool) {
	r, err := parseResource(o.GetAnnotations()[sourceAnnotation])
	return r, err == nil && o.GetLabels()[ownerLabel] == owner && o.GetNamespace() == r.namespace && o.GetName() == r.objectName(owner)
}
