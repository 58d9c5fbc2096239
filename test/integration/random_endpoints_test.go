package integration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/test/model"
)

func (w *randomWorld) freshEndpoint() model.Endpoint {
	rrtype := pick(w, "A", "A", "AAAA", "CNAME", "TXT", "MX", "PTR")
	z := pick(w, w.zones...)
	e := model.Endpoint{Type: rrtype, TTL: w.ttl(), DNSName: strings.TrimSuffix(model.AbsoluteName(pick(w, namesOfType[rrtype]...), z.Name), ".")}
	if w.rng.IntN(20) == 0 {
		e.DNSName = "www.nowhere.example"
	}
	switch rrtype {
	case "MX":
		e.Targets = []string{"10 mail.example.net"}
	case "CNAME", "PTR":
		e.Targets = []string{pick(w, "one.example.net", "two.example.net")}
	default:
		e.Targets = []string{w.value(rrtype)}
	}
	return e
}

func (w *randomWorld) freshEndpoints() []model.Endpoint {
	var all []model.Endpoint
	for range 1 + w.rng.IntN(4) {
		all = append(all, w.freshEndpoint())
	}
	return all
}

func (w *randomWorld) stepCreateEndpoint() bool {
	w.made++
	t := &model.Object{Kind: model.EndpointKind, Name: fmt.Sprintf("endpoint-%d", w.made), Endpoints: w.freshEndpoints()}
	if w.isFrozen(t) {
		return false
	}
	w.add(t)
	return true
}

func (w *randomWorld) stepChangeEndpoint() bool {
	t := w.any(func(t *model.Object) bool { return t.Kind == model.EndpointKind })
	if t == nil {
		return false
	}
	next := *t
	next.Endpoints = slices.Clone(t.Endpoints)
	switch i := w.rng.IntN(len(next.Endpoints)); w.rng.IntN(3) {
	case 0:
		next.Endpoints[i] = w.freshEndpoint()
	case 1:
		next.Endpoints = append(next.Endpoints, w.freshEndpoint())
	case 2:
		next.Endpoints = slices.Delete(next.Endpoints, i, i+1)
	}
	if len(next.Endpoints) == 0 {
		next.Endpoints = w.freshEndpoints()
	}
	w.change(t, next)
	return true
}
