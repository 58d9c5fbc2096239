package integration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// thing is an object that declares DNS data, as the model knows it.
type thing struct {
	kind, name string
	// label is the value of its label "zone"; empty when it has none.
	label string
	// owner is spec.name, values what the fields of the kind hold, ttl spec.ttl; 0 leaves it out.
	owner  string
	values []string
	ttl    int64
	// endpoints are those of a DNSEndpoint, which has none of the three before.
	endpoints []endpoint

	created time.Time
	uid     string
}

type endpoint struct {
	dnsName, rrtype string
	ttl             int64
	targets         []string
}

const endpointKind = "DNSEndpoint"

// typeOfKind gives the DNS type of the record kinds.
var typeOfKind = map[string]string{
	"ARecord": "A", "AAAARecord": "AAAA", "CNAMERecord": "CNAME", "NSRecord": "NS",
	"TXTRecord": "TXT", "MXRecord": "MX", "SRVRecord": "SRV", "CAARecord": "CAA",
}

func (t *thing) String() string {
	if t.kind == endpointKind {
		return fmt.Sprintf("%s %s %v", t.kind, t.name, t.endpoints)
	}
	return fmt.Sprintf("%s %s (zone=%s, %s %d %v)", t.kind, t.name, t.label, t.owner, t.ttl, t.values)
}

func (t *thing) gvk() schema.GroupVersionKind {
	if t.kind == endpointKind {
		return v1alpha1.GroupVersion.WithKind(t.kind)
	}
	return v1beta1.GroupVersion.WithKind(t.kind)
}

// object is the thing as it is written to Kubernetes.
func (t *thing) object(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": t.spec()}}
	u.SetGroupVersionKind(t.gvk())
	u.SetNamespace(namespace)
	u.SetName(t.name)
	if t.label != "" {
		u.SetLabels(map[string]string{"zone": t.label})
	}
	return u
}

func (t *thing) spec() map[string]any {
	if t.kind == endpointKind {
		all := []any{}
		for _, e := range t.endpoints {
			all = append(all, map[string]any{"dnsName": e.dnsName, "recordType": e.rrtype, "recordTTL": e.ttl, "targets": anys(e.targets)})
		}
		return map[string]any{"endpoints": all}
	}
	spec := map[string]any{"name": t.owner, "ttl": nil}
	if t.ttl != 0 {
		spec["ttl"] = t.ttl
	}
	first := t.values[0]
	switch t.kind {
	case "ARecord":
		spec["ipv4Addresses"] = anys(t.values)
	case "AAAARecord":
		spec["ipv6Addresses"] = anys(t.values)
	case "CNAMERecord":
		spec["target"] = first
	case "NSRecord":
		spec["nameserver"] = first
	case "TXTRecord":
		spec["text"] = anys(t.values[:1])
	case "MXRecord":
		spec["priority"], spec["mailServer"] = int64(10), first
	case "SRVRecord":
		spec["priority"], spec["weight"], spec["port"], spec["target"] = int64(1), int64(2), int64(5060), first
	case "CAARecord":
		spec["flags"], spec["tag"], spec["value"] = int64(0), "issue", first
	}
	return spec
}

func anys(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// declares is what the thing says in a zone that it belongs to.
func (t *thing) declares(z *zoneState) *declaration {
	d := &declaration{by: t, name: absolute(strings.ToLower(t.owner), z.name), rrtype: typeOfKind[t.kind], ttl: z.ttl}
	if t.ttl != 0 {
		d.ttl = t.ttl
	}
	for _, v := range t.values {
		switch t.kind {
		case "CNAMERecord", "NSRecord":
			v = absolute(v, z.name)
		case "TXTRecord":
			v = `"` + v + `"`
		case "MXRecord":
			v = "10 " + absolute(v, z.name)
		case "SRVRecord":
			v = "1 2 5060 " + absolute(v, z.name)
		case "CAARecord":
			v = `0 issue "` + v + `"`
		}
		if d.rdata = append(d.rdata, v); t.kind != "ARecord" && t.kind != "AAAARecord" {
			break // The other kinds hold one value.
		}
	}
	return d
}

// declares is what an endpoint says in its zone. Its names are complete, with or without a final dot.
func (e endpoint) declares(by *thing, index int, z *zoneState) *declaration {
	d := &declaration{by: by, index: index, name: strings.ToLower(e.dnsName) + ".", rrtype: e.rrtype, ttl: z.ttl}
	if e.ttl != 0 {
		d.ttl = e.ttl
	}
	for _, v := range e.targets {
		switch e.rrtype {
		case "CNAME", "NS", "PTR", "MX", "SRV":
			v += "."
		case "TXT":
			v = `"` + v + `"`
		}
		d.rdata = append(d.rdata, v)
	}
	return d
}

// absolute reads a name as a zone file does.
func absolute(name, zone string) string {
	switch {
	case name == "@":
		return zone
	case strings.HasSuffix(name, "."):
		return name
	}
	return name + "." + zone
}

// zoneState is a zone of the model with what the steps have done to it.
type zoneState struct {
	modelZone
	// selects are the values of the label "zone" that the zone selects.
	selects []string
	refresh int64
	paused  bool
	// frozen keeps the zone's object from changing until the next checkpoint.
	frozen bool
}

func (z *zoneState) dnsName() string { return strings.TrimSuffix(z.name, ".") }

// selecting is the zone that a record with the label belongs to: the oldest that selects it.
func (w *world) selecting(label string) *zoneState {
	var found *zoneState
	for _, z := range w.zones {
		if label == "" || !slices.Contains(z.selects, label) {
			continue
		}
		if found == nil || z.created.Before(found.created) || z.created.Equal(found.created) && z.uid < found.uid {
			found = z
		}
	}
	return found
}

// longest is the zone of an endpoint: the longest one that its name is in.
func (w *world) longest(dnsName string) *zoneState {
	var found *zoneState
	for _, z := range w.zones {
		if within(strings.ToLower(dnsName)+".", z.name) && (found == nil || len(z.name) > len(found.name)) {
			found = z
		}
	}
	return found
}

// declared sorts what all things say by zone. What belongs to no zone is under nil.
func (w *world) declared() map[*zoneState][]*declaration {
	all := map[*zoneState][]*declaration{}
	for _, t := range w.things {
		for i, e := range t.endpoints {
			z := w.longest(e.dnsName)
			if z == nil {
				all[nil] = append(all[nil], &declaration{by: t, index: i})
				continue
			}
			all[z] = append(all[z], e.declares(t, i, z))
		}
		if t.kind == endpointKind {
			continue
		}
		if z := w.selecting(t.label); z != nil {
			all[z] = append(all[z], t.declares(z))
		} else {
			all[nil] = append(all[nil], &declaration{by: t})
		}
	}
	return all
}

// namesOf are the owner names that a thing has in its zones now.
func (w *world) namesOf(t *thing) []string {
	var names []string
	for _, e := range t.endpoints {
		names = append(names, strings.ToLower(e.dnsName)+".")
	}
	if z := w.selecting(t.label); z != nil && t.kind != endpointKind {
		names = append(names, t.declares(z).name)
	}
	return names
}
