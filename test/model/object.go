package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Object is an object that declares DNS data.
type Object struct {
	Kind, Name string
	// Type is spec.type of a DNSRecord; empty for all other kinds.
	Type string
	// Label is the value of its label "zone", empty when it has none.
	Label string
	// Owner is spec.name, Values what the fields of the kind hold, TTL spec.ttl. 0 omits it.
	Owner  string
	Values []string
	TTL    int64
	// Endpoints are those of a DNSEndpoint, which has none of the three fields before.
	Endpoints []Endpoint

	Created time.Time
	UID     string
}

// Endpoint is an entry of a DNSEndpoint's spec.endpoints.
type Endpoint struct {
	DNSName, Type string
	TTL           int64
	Targets       []string
}

// EndpointKind is the kind of objects that have endpoints.
const EndpointKind = "DNSEndpoint"

// AnyTypeKind is the kind of records that name their type themselves.
const AnyTypeKind = "DNSRecord"

// TypeOfKind maps each record kind that has a DNS type of its own to that.
var TypeOfKind = map[string]string{
	"ARecord": "A", "AAAARecord": "AAAA", "CNAMERecord": "CNAME", "NSRecord": "NS",
	"TXTRecord": "TXT", "MXRecord": "MX", "SRVRecord": "SRV", "CAARecord": "CAA", "PTRRecord": "PTR",
}

// RRType is the DNS type of a record.
func (o *Object) RRType() string { return cmp.Or(o.Type, TypeOfKind[o.Kind]) }

// String implements fmt.Stringer.
func (o *Object) String() string {
	if o.Kind == EndpointKind {
		return fmt.Sprintf("%s %s %v", o.Kind, o.Name, o.Endpoints)
	}
	return fmt.Sprintf("%s %s (zone=%s, %s %d %s %v)", o.Kind, o.Name, o.Label, o.Owner, o.TTL, o.RRType(), o.Values)
}

func (o *Object) groupVersionKind() schema.GroupVersionKind {
	if o.Kind == EndpointKind {
		return v1alpha1.GroupVersion.WithKind(o.Kind)
	}
	return v1beta1.GroupVersion.WithKind(o.Kind)
}

// ToUnstructured returns the object as it is written to Kubernetes.
func (o *Object) ToUnstructured(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": o.Spec()}}
	u.SetGroupVersionKind(o.groupVersionKind())
	u.SetNamespace(namespace)
	u.SetName(o.Name)
	if o.Label != "" {
		u.SetLabels(map[string]string{"zone": o.Label})
	}
	return u
}

// Spec returns the object's spec.
func (o *Object) Spec() map[string]any {
	if o.Kind == EndpointKind {
		all := []any{}
		for _, e := range o.Endpoints {
			all = append(all, map[string]any{"dnsName": e.DNSName, "recordType": e.Type, "recordTTL": e.TTL, "targets": toAny(e.Targets)})
		}
		return map[string]any{"endpoints": all}
	}
	spec := map[string]any{"name": o.Owner, "ttl": nil}
	if o.TTL != 0 {
		spec["ttl"] = o.TTL
	}
	first := o.Values[0]
	switch o.Kind {
	case "ARecord":
		spec["ipv4Addresses"] = toAny(o.Values)
	case "AAAARecord":
		spec["ipv6Addresses"] = toAny(o.Values)
	case "CNAMERecord", "PTRRecord":
		spec["target"] = first
	case "NSRecord":
		spec["nameserver"] = first
	case "TXTRecord":
		spec["text"] = toAny(o.Values[:1])
	case "MXRecord":
		spec["priority"], spec["mailServer"] = int64(10), first
	case "SRVRecord":
		spec["priority"], spec["weight"], spec["port"], spec["target"] = int64(1), int64(2), int64(5060), first
	case "CAARecord":
		spec["flags"], spec["tag"], spec["value"] = int64(0), "issue", first
	case AnyTypeKind:
		spec["type"], spec["data"] = o.Type, toAny(o.Values)
	}
	return spec
}

func toAny(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// Declare returns what a record declares in its zone.
func (o *Object) Declare(z *Zone) *Declaration {
	d := &Declaration{By: o, Name: AbsoluteName(strings.ToLower(o.Owner), z.Name), Type: o.RRType(), TTL: z.TTL}
	if o.TTL != 0 {
		d.TTL = o.TTL
	}
	for _, v := range o.Values {
		switch o.Kind {
		case "CNAMERecord", "NSRecord", "PTRRecord":
			v = AbsoluteName(v, z.Name)
		case "TXTRecord":
			v = `"` + v + `"`
		case "MXRecord":
			v = "10 " + AbsoluteName(v, z.Name)
		case "SRVRecord":
			v = "1 2 5060 " + AbsoluteName(v, z.Name)
		case "CAARecord":
			v = `0 issue "` + v + `"`
		}
		if d.Rdata = append(d.Rdata, v); !slices.Contains([]string{"ARecord", "AAAARecord", AnyTypeKind}, o.Kind) {
			break // The other kinds hold one value.
		}
	}
	return d
}

// Declare returns what an endpoint declares in its zone. Its names are complete, with or without a final dot.
func (e Endpoint) Declare(by *Object, index int, z *Zone) *Declaration {
	d := &Declaration{By: by, Index: index, Name: strings.ToLower(e.DNSName) + ".", Type: e.Type, TTL: z.TTL}
	if e.TTL != 0 {
		d.TTL = e.TTL
	}
	for _, v := range e.Targets {
		switch e.Type {
		case "CNAME", "NS", "PTR", "MX", "SRV":
			v += "."
		case "TXT":
			v = `"` + v + `"`
		}
		d.Rdata = append(d.Rdata, v)
	}
	return d
}

// AbsoluteName returns the complete name that a zone file means by name.
func AbsoluteName(name, zone string) string {
	switch {
	case name == "@":
		return zone
	case strings.HasSuffix(name, "."):
		return name
	}
	return name + "." + zone
}
