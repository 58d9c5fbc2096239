package integration

import (
	"fmt"
	"slices"
	"strings"
)

func (w *world) freshEndpoint() endpoint {
	rrtype := pick(w, "A", "A", "AAAA", "CNAME", "TXT", "MX", "PTR")
	z := pick(w, w.zones...)
	e := endpoint{rrtype: rrtype, ttl: w.ttl(), dnsName: strings.TrimSuffix(absolute(pick(w, namesOfType[rrtype]...), z.name), ".")}
	if w.rng.IntN(20) == 0 {
		e.dnsName = "www.nowhere.example"
	}
	switch rrtype {
	case "MX":
		e.targets = []string{"10 mail.example.net"}
	case "CNAME", "PTR":
		e.targets = []string{pick(w, "one.example.net", "two.example.net")}
	default:
		e.targets = []string{w.value(rrtype)}
	}
	return e
}

func (w *world) freshEndpoints() []endpoint {
	var all []endpoint
	for range 1 + w.rng.IntN(4) {
		all = append(all, w.freshEndpoint())
	}
	return all
}

func (w *world) stepCreateEndpoint() bool {
	w.made++
	t := &thing{kind: endpointKind, name: fmt.Sprintf("endpoint-%d", w.made), endpoints: w.freshEndpoints()}
	if w.isFrozen(t) {
		return false
	}
	w.add(t)
	return true
}

func (w *world) stepChangeEndpoint() bool {
	t := w.any(func(t *thing) bool { return t.kind == endpointKind })
	if t == nil {
		return false
	}
	next := *t
	next.endpoints = slices.Clone(t.endpoints)
	switch i := w.rng.IntN(len(next.endpoints)); w.rng.IntN(3) {
	case 0:
		next.endpoints[i] = w.freshEndpoint()
	case 1:
		next.endpoints = append(next.endpoints, w.freshEndpoint())
	case 2:
		next.endpoints = slices.Delete(next.endpoints, i, i+1)
	}
	if len(next.endpoints) == 0 {
		next.endpoints = w.freshEndpoints()
	}
	w.change(t, next)
	return true
}
