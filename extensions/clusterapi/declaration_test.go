package clusterapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
)

// What annotations and a host become: RRsets, or a problem that names the field.
func TestDeclareEndpoint(t *testing.T) {
	const zone, name, wildcard = v1beta1.EndpointZoneAnnotation, v1beta1.EndpointNameAnnotation, v1beta1.EndpointWildcardAnnotation
	for title, c := range map[string]struct {
		annotations map[string]string
		host        string
		want        []string
		problem     string
	}{
		"no annotation":      {nil, "192.0.2.1", nil, ""},
		"name alone":         {map[string]string{name: "api.example.com"}, "192.0.2.1", nil, ""},
		"IPv4":               {map[string]string{zone: "example.com"}, "192.0.2.1", []string{"prod.example.com A 192.0.2.1"}, ""},
		"final dots, case":   {map[string]string{zone: "Example.COM.", name: "API.example.com."}, "LB.Example.net.", []string{"api.example.com CNAME lb.example.net"}, ""},
		"IPv6":               {map[string]string{zone: "example.com"}, "2001:DB8::1", []string{"prod.example.com AAAA 2001:db8::1"}, ""},
		"IPv4 in IPv6":       {map[string]string{zone: "example.com"}, "::ffff:192.0.2.1", []string{"prod.example.com A 192.0.2.1"}, ""},
		"host name":          {map[string]string{zone: "example.com"}, "lb.example.net", []string{"prod.example.com CNAME lb.example.net"}, ""},
		"own name":           {map[string]string{zone: "example.com", name: "api.eu.example.com"}, "192.0.2.1", []string{"api.eu.example.com A 192.0.2.1"}, ""},
		"wildcard":           {map[string]string{zone: "example.com", wildcard: "true"}, "192.0.2.1", []string{"prod.example.com A 192.0.2.1", "*.prod.example.com A 192.0.2.1"}, ""},
		"no wildcard":        {map[string]string{zone: "example.com", wildcard: "yes"}, "192.0.2.1", []string{"prod.example.com A 192.0.2.1"}, ""},
		"apex with address":  {map[string]string{zone: "example.com", name: "example.com"}, "192.0.2.1", []string{"example.com A 192.0.2.1"}, ""},
		"apex with name":     {map[string]string{zone: "example.com", name: "example.com"}, "lb.example.net", nil, "cannot be a CNAME"},
		"no host":            {map[string]string{zone: "example.com"}, "", nil, "controlPlaneEndpoint.host is known"},
		"empty zone":         {map[string]string{zone: ""}, "192.0.2.1", nil, "endpoint-zone"},
		"zone with a space":  {map[string]string{zone: "example com"}, "192.0.2.1", nil, "endpoint-zone"},
		"other zone":         {map[string]string{zone: "example.com", name: "api.example.org"}, "192.0.2.1", nil, "not in the zone"},
		"similar zone":       {map[string]string{zone: "example.com", name: "badexample.com"}, "192.0.2.1", nil, "not in the zone"},
		"wildcard name":      {map[string]string{zone: "example.com", name: "*.example.com"}, "192.0.2.1", nil, "endpoint-name"},
		"empty name":         {map[string]string{zone: "example.com", name: ""}, "192.0.2.1", nil, "endpoint-name"},
		"name with escape":   {map[string]string{zone: "example.com", name: `a\.b.example.com`}, "192.0.2.1", nil, "endpoint-name"},
		"host is the name":   {map[string]string{zone: "example.com"}, "prod.example.com", nil, "the name that is published"},
		"host below it":      {map[string]string{zone: "example.com", wildcard: "true"}, "a.prod.example.com", nil, "the name that is published"},
		"host with a URL":    {map[string]string{zone: "example.com"}, "https://lb.example.net", nil, "neither"},
		"host with a port":   {map[string]string{zone: "example.com"}, "192.0.2.1:6443", nil, "neither"},
		"host in brackets":   {map[string]string{zone: "example.com"}, "[2001:db8::1]", nil, "neither"},
		"host with newline":  {map[string]string{zone: "example.com"}, "lb.example.net\nx", nil, "neither"},
		"host with quote":    {map[string]string{zone: "example.com"}, `lb".example.net`, nil, "neither"},
		"host is a wildcard": {map[string]string{zone: "example.com"}, "*.example.net", nil, "neither"},
		"scoped address":     {map[string]string{zone: "example.com"}, "fe80::1%eth0", nil, "connect to"},
		"loopback":           {map[string]string{zone: "example.com"}, "127.0.0.1", nil, "connect to"},
		"unspecified":        {map[string]string{zone: "example.com"}, "0.0.0.0", nil, "connect to"},
	} {
		t.Run(title, func(t *testing.T) {
			o := &infrastructure.CAPTCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod-infra", UID: "1", Annotations: c.annotations}}
			d := declareEndpoint(bearer{o, infrastructureKind, "prod", c.host})
			var got []string
			if d.object != nil {
				for _, e := range d.object.Spec.Endpoints {
					got = append(got, e.DNSName+" "+e.RecordType+" "+strings.Join(e.Targets, " "))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			if (d.problem.Reason != "") != (c.problem != "") || !strings.Contains(d.problem.Message, c.problem) {
				t.Errorf("problem %+v, want one with %q", d.problem, c.problem)
			}
			if d.invalid != (c.problem != "" && c.host != "") {
				t.Errorf("invalid is %v", d.invalid)
			}
		})
	}
}

// The DNSEndpoint belongs to the object, is in its namespace, and consents to no more than the object does.
func TestDeclareEndpointOwner(t *testing.T) {
	o := &infrastructure.CAPTCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "prod", UID: "1", Annotations: map[string]string{v1beta1.EndpointZoneAnnotation: "example.com", "other": "x"},
	}}
	declare := func() metav1.ObjectMeta {
		return declareEndpoint(bearer{o, infrastructureKind, "prod", "192.0.2.1"}).object.ObjectMeta
	}
	want := metav1.ObjectMeta{Namespace: "team", Name: "captcluster-prod", Annotations: map[string]string{}, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "CAPTCluster", Name: "prod", UID: "1", Controller: new(true),
	}}}
	if diff := cmp.Diff(want, declare()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	o.Annotations[v1beta1.AllowZoneNamespacesAnnotation] = "dns"
	want.Annotations[v1beta1.AllowZoneNamespacesAnnotation] = "dns"
	if diff := cmp.Diff(want, declare()); diff != "" {
		t.Errorf("with consent (-want +got):\n%s", diff)
	}
}
