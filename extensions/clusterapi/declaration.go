package clusterapi

import (
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// bearer is an object whose annotations ask for a name.
type bearer struct {
	client.Object
	kind schema.GroupVersionKind
	// cluster is the name of the Cluster, host where its API server is; empty if that is not known yet.
	cluster, host string
}

// declaration is the DNSEndpoint that an object's annotations ask for.
type declaration struct {
	// name is the DNS name without the final dot; empty if none is asked for.
	name string
	// problem is why there is nothing to publish; zero if there is. invalid is true if a person has to change something.
	problem status.Verdict
	invalid bool
	object  *v1alpha1.DNSEndpoint
}

// wantsName reports whether an object's annotations ask for a name.
func wantsName(o client.Object) bool {
	_, ok := o.GetAnnotations()[v1beta1.EndpointZoneAnnotation]
	return ok
}

// endpointName returns the name of the DNSEndpoint of an object.
func endpointName(o bearer) string { return strings.ToLower(o.kind.Kind) + "-" + o.GetName() }

// declareEndpoint returns what an object's annotations ask for.
func declareEndpoint(o bearer) declaration {
	if !wantsName(o) {
		return declaration{}
	}
	d := declaration{}
	var problem string
	if d.name, problem = publishedName(o); problem == "" && len(endpointName(o)) > validation.DNS1123SubdomainMaxLength {
		problem = fmt.Sprintf("metadata.name is too long for a DNSEndpoint of the name %s: use a shorter one", endpointName(o))
	}
	if problem == "" && o.host == "" {
		d.problem = status.PublishedLater(d.name)
		return d
	}
	var endpoint v1alpha1.Endpoint
	if problem == "" {
		endpoint, problem = endpointOf(d.name, o.GetAnnotations()[v1beta1.EndpointZoneAnnotation], o.host)
	}
	if problem != "" {
		d.problem, d.invalid = status.False(status.Invalid, problem), true
		return d
	}
	d.object = newEndpoint(o, endpoint)
	return d
}

// publishedName returns the name that an object asks for, or why it cannot be.
func publishedName(o bearer) (name, problem string) {
	annotations := o.GetAnnotations()
	zone := withoutDot(annotations[v1beta1.EndpointZoneAnnotation])
	if errs := validation.IsDNS1123Subdomain(zone); len(errs) > 0 {
		return "", fmt.Sprintf("annotation %s: %q is not the DNS name of a zone: write it like example.com", v1beta1.EndpointZoneAnnotation, zone)
	}
	name = o.cluster + "." + zone
	if own, ok := annotations[v1beta1.EndpointNameAnnotation]; ok {
		name = withoutDot(own)
	}
	switch errs := validation.IsDNS1123Subdomain(name); {
	case len(errs) > 0:
		return name, fmt.Sprintf("annotation %s: %q is not a host name: write it like api.%s", v1beta1.EndpointNameAnnotation, name, zone)
	case name != zone && !strings.HasSuffix(name, "."+zone):
		return name, fmt.Sprintf("annotation %s: %q is not in the zone %s of the annotation %s: write a name that ends in it",
			v1beta1.EndpointNameAnnotation, name, zone, v1beta1.EndpointZoneAnnotation)
	}
	return name, ""
}

func withoutDot(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// endpointOf returns the RRset of a name that leads to a host, or why there is none.
func endpointOf(name, zone, host string) (e v1alpha1.Endpoint, problem string) {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		if a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
			return e, fmt.Sprintf("controlPlaneEndpoint.host: %q is no address that others can connect to: use one that they can", host)
		}
		e = v1alpha1.Endpoint{DNSName: name, RecordType: "AAAA", Targets: []string{a.String()}}
		if a.Is4() {
			e.RecordType = "A"
		}
		return e, ""
	}
	target := withoutDot(host)
	switch errs := validation.IsDNS1123Subdomain(target); {
	case len(errs) > 0:
		return e, fmt.Sprintf("controlPlaneEndpoint.host: %q is neither an IP address nor a host name", host)
	case target == name || strings.HasSuffix(target, "."+name):
		return e, fmt.Sprintf("controlPlaneEndpoint.host: %q is the name that is published, or below it: publish another name, or use the address of the API server", host)
	case name == withoutDot(zone):
		return e, fmt.Sprintf("the name %s is the zone's own, which cannot be a CNAME of %s: publish a name below it (annotation %s)", name, target, v1beta1.EndpointNameAnnotation)
	}
	return v1alpha1.Endpoint{DNSName: name, RecordType: "CNAME", Targets: []string{target}}, ""
}

// newEndpoint returns the DNSEndpoint of an object. The object's consent to zones of other namespaces is that of the DNSEndpoint.
func newEndpoint(o bearer, endpoint v1alpha1.Endpoint) *v1alpha1.DNSEndpoint {
	e := &v1alpha1.DNSEndpoint{}
	e.SetGroupVersionKind(endpointKind)
	e.Namespace, e.Name = o.GetNamespace(), endpointName(o)
	e.Annotations = map[string]string{}
	if consent, ok := o.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation]; ok {
		e.Annotations[v1beta1.AllowZoneNamespacesAnnotation] = consent
	}
	e.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: o.kind.GroupVersion().String(), Kind: o.kind.Kind, Name: o.GetName(), UID: o.GetUID(), Controller: new(true),
	}}
	e.Spec.Endpoints = []*v1alpha1.Endpoint{&endpoint}
	if o.GetAnnotations()[v1beta1.EndpointWildcardAnnotation] == "true" {
		below := endpoint
		below.DNSName = "*." + endpoint.DNSName
		e.Spec.Endpoints = append(e.Spec.Endpoints, &below)
	}
	return e
}

var endpointKind = v1alpha1.GroupVersion.WithKind(source.EndpointKind)
