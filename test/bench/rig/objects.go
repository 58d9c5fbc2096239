package rig

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Address is an A RR: an absolute owner name in lower case, and an IPv4 address.
type Address struct{ Name, IP string }

// Form is the kind of objects that declare A RRs.
type Form string

const (
	// Objects are ARecords of one address each.
	Objects Form = "objects"
	// Addresses are ARecords of ten addresses each.
	Addresses Form = "addresses"
	// Endpoints are DNSEndpoints of ten endpoints, each of one address.
	Endpoints Form = "endpoints"
)

// recordsPerObject is how many RRs an object of the forms with several has.
const recordsPerObject = 10

// Forms are those that a flag may name.
var Forms = []Form{Objects, Addresses, Endpoints}

// ParseForm returns the form of a flag's value.
func ParseForm(s string) (Form, error) {
	for _, f := range Forms {
		if string(f) == s {
			return f, nil
		}
	}
	return "", fmt.Errorf("%q is none of the forms %v", s, Forms)
}

// WantedRecords returns count A RRs below a zone, in the order and under the names that the form declares them.
func (f Form) WantedRecords(zone string, count int) []Address {
	wanted := make([]Address, count)
	for i := range wanted {
		name := i
		if f == Addresses {
			name = i / recordsPerObject
		}
		wanted[i] = Address{Name: fmt.Sprintf("host-%d.%s.", name, zone), IP: recordAddress(i)}
	}
	return wanted
}

// recordAddress returns the address of RR number i.
func recordAddress(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }

// DeclareRecords returns the objects, not created yet, that declare the addresses for a DNSZone.
func (r *Rig) DeclareRecords(f Form, zoneObject, zone string, wanted []Address) []client.Object {
	per := recordsPerObject
	if f == Objects {
		per = 1
	}
	var objects []client.Object
	for i := 0; i < len(wanted); i += per {
		part := wanted[i:min(i+per, len(wanted))]
		meta := r.ObjectMeta(fmt.Sprintf("%s-%d", zoneObject, i/per), ZoneLabels(zoneObject))
		if f == Endpoints {
			e := &v1alpha1.DNSEndpoint{ObjectMeta: meta}
			for _, a := range part {
				e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{DNSName: a.Name, RecordType: "A", Targets: []string{a.IP}})
			}
			objects = append(objects, e)
			continue
		}
		record := &v1beta1.ARecord{ObjectMeta: meta}
		record.Spec.Name = part[0].Name[:len(part[0].Name)-len(zone)-2]
		for _, a := range part {
			record.Spec.IPv4Addresses = append(record.Spec.IPv4Addresses, a.IP)
		}
		objects = append(objects, record)
	}
	return objects
}
