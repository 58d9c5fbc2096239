package plugin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// selection gives the queries that find the targets themselves; everything when there are none.
func (o *options) selection(targets []target) []query {
	if len(targets) == 0 {
		return []query{{labels: o.selector}}
	}
	var queries []query
	for _, t := range targets {
		by := fields.Set{v1alpha1.FieldKind: t.kind.Kind}
		if t.name != "" {
			by = fields.Set{v1alpha1.FieldName: t.status()}
		}
		queries = append(queries, query{fields: by, labels: o.selector})
	}
	return queries
}

// find gets the targets as they are now. Those that have names must exist.
func (c *client) find(ctx context.Context, o *options, targets []target) ([]v1alpha1.SyncStatus, error) {
	if len(targets) == 0 {
		return c.list(ctx, o.selection(nil)...)
	}
	found := world{}
	for _, t := range targets {
		if t.name != "" {
			s, err := c.get(ctx, t)
			if err != nil {
				return nil, err
			}
			found.put(s)
			continue
		}
		all, err := c.list(ctx, o.selection([]target{t})...)
		if err != nil {
			return nil, err
		}
		for i := range all {
			found.put(&all[i])
		}
	}
	return found.items(), nil
}

// branches are the parts of the tree that somebody asked for.
type branches struct {
	queries []query
	// roots are the objects asked for by name; all that the queries select is wanted when there are none.
	roots []*v1alpha1.SyncStatus
}

// branches finds out what has to be asked for to show the targets with all that is below them.
func (c *client) branches(ctx context.Context, o *options, targets []target) (branches, error) {
	b := branches{queries: o.selection(targets)}
	for _, t := range targets {
		if t.name == "" {
			continue
		}
		s, err := c.get(ctx, t)
		if err != nil {
			return b, err
		}
		b.roots = append(b.roots, s)
		switch {
		case t.kind == syncstatus.ZoneKind:
			b.queries = append(b.queries, query{fields: fields.Set{v1alpha1.FieldZone: s.Zone}})
		case t.kind != syncstatus.InstanceKind && slices.Contains(syncstatus.FleetKinds, t.kind):
			b.queries = append(b.queries, query{fields: fields.Set{v1alpha1.FieldKind: syncstatus.InstanceKind.Kind}})
		}
	}
	if len(b.roots) < len(targets) {
		b.roots = nil // Whole kinds are among them: what is found is wanted.
	}
	return b, nil
}

// wanted leaves out what the queries find beside the roots and what belongs to them.
func (b branches) wanted(w world) []v1alpha1.SyncStatus {
	return slices.DeleteFunc(w.items(), func(s v1alpha1.SyncStatus) bool { return !b.concerns(w, &s) })
}

// belongs tells whether an object is part of another: a record of a zone, an instance of a cluster.
func belongs(s, to *v1alpha1.SyncStatus) bool {
	switch {
	case s.Namespace != to.Namespace:
		return false
	case to.ObjectRef.Kind == syncstatus.ZoneKind.Kind:
		return s.ObjectRef.Kind != syncstatus.ZoneKind.Kind && inZone(s, to.Zone)
	case s.ObjectRef.Kind == syncstatus.InstanceKind.Kind:
		return to.ObjectRef.Kind != syncstatus.InstanceKind.Kind && slices.ContainsFunc(to.Servers, func(row v1alpha1.ServerStatus) bool {
			return row.Instance == s.ObjectRef.Name && row.Namespace == ""
		})
	}
	return false
}

// inZone tells whether an object has to do with a zone; a DNSEndpoint can with several.
func inZone(s *v1alpha1.SyncStatus, zone string) bool {
	return slices.Contains(strings.Split(s.Zone, ","), zone)
}

// concerns tells whether an object is among what is wanted.
func (b branches) concerns(w world, s *v1alpha1.SyncStatus) bool {
	if len(b.roots) == 0 {
		return true
	}
	return slices.ContainsFunc(b.roots, func(r *v1alpha1.SyncStatus) bool {
		if now := w[keyOf(r)]; now != nil {
			r = now
		}
		return keyOf(r) == keyOf(s) || belongs(s, r)
	})
}
