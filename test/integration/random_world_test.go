package integration

import (
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/test/model"
)

// zoneState is a zone of the model with what the steps have done to it.
type zoneState struct {
	model.Zone
	// selects are the values of the label "zone" that the zone selects.
	selects []string
	refresh int64
	paused  bool
	// frozen keeps the zone's object from changing until the next checkpoint.
	frozen bool
}

func (z *zoneState) dnsName() string { return strings.TrimSuffix(z.Name, ".") }

// selecting is the zone that a record with the label belongs to: the oldest that selects it.
func (w *randomWorld) selecting(label string) *zoneState {
	var found *zoneState
	for _, z := range w.zones {
		if label == "" || !slices.Contains(z.selects, label) {
			continue
		}
		if found == nil || z.Created.Before(found.Created) || z.Created.Equal(found.Created) && z.Object < found.Object {
			found = z
		}
	}
	return found
}

// longest is the zone of an endpoint: the longest one that its name is in.
func (w *randomWorld) longest(dnsName string) *zoneState {
	var found *zoneState
	for _, z := range w.zones {
		if model.IsWithin(strings.ToLower(dnsName)+".", z.Name) && (found == nil || len(z.Name) > len(found.Name)) {
			found = z
		}
	}
	return found
}

// declared sorts what all things say by zone. What belongs to no zone is under nil.
func (w *randomWorld) declared() map[*zoneState][]*model.Declaration {
	all := map[*zoneState][]*model.Declaration{}
	for _, t := range w.objects {
		for i, e := range t.Endpoints {
			z := w.longest(e.DNSName)
			if z == nil {
				all[nil] = append(all[nil], &model.Declaration{By: t, Index: i})
				continue
			}
			all[z] = append(all[z], e.Declare(t, i, &z.Zone))
		}
		if t.Kind == model.EndpointKind {
			continue
		}
		if z := w.selecting(t.Label); z != nil {
			all[z] = append(all[z], t.Declare(&z.Zone))
		} else {
			all[nil] = append(all[nil], &model.Declaration{By: t})
		}
	}
	return all
}

// namesOf are the owner names that a thing has in its zones now.
func (w *randomWorld) namesOf(t *model.Object) []string {
	var names []string
	for _, e := range t.Endpoints {
		names = append(names, strings.ToLower(e.DNSName)+".")
	}
	if z := w.selecting(t.Label); z != nil && t.Kind != model.EndpointKind {
		names = append(names, t.Declare(&z.Zone).Name)
	}
	return names
}
