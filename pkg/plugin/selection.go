package plugin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// queriesFor finds the targets themselves; everything when there are none.
func (o *commandOptions) queriesFor(targets []target) []statusQuery {
	if len(targets) == 0 {
		return []statusQuery{{labels: o.selector}}
	}
	var queries []statusQuery
	for _, t := range targets {
		by := fields.Set{v1alpha1.FieldKind: t.kind.Kind}
		if t.name != "" {
			by = fields.Set{v1alpha1.FieldName: t.statusName()}
		}
		queries = append(queries, statusQuery{fields: by, labels: o.selector})
	}
	return queries
}

// findTargets gets the targets as they are now. Those that have names must exist.
func (c *statusClient) findTargets(ctx context.Context, o *commandOptions, targets []target) ([]v1alpha1.SyncStatus, error) {
	if len(targets) == 0 {
		return c.listStatuses(ctx, o.queriesFor(nil)...)
	}
	found := statusSet{}
	for _, t := range targets {
		if t.name != "" {
			s, err := c.getStatus(ctx, t)
			if err != nil {
				return nil, err
			}
			found.put(s)
			continue
		}
		all, err := c.listStatuses(ctx, o.queriesFor([]target{t})...)
		if err != nil {
			return nil, err
		}
		for i := range all {
			found.put(&all[i])
		}
	}
	return found.sortedItems(), nil
}

// subtreeSelection are the parts of the tree that somebody asked for.
type subtreeSelection struct {
	queries []statusQuery
	// roots are the objects asked for by name; all that the queries select is wanted when there are none.
	roots []*v1alpha1.SyncStatus
}

// selectSubtrees prepares the queries for the targets with all that is below them.
func (c *statusClient) selectSubtrees(ctx context.Context, o *commandOptions, targets []target) (subtreeSelection, error) {
	b := subtreeSelection{queries: o.queriesFor(targets)}
	for _, t := range targets {
		if t.name == "" {
			continue
		}
		s, err := c.getStatus(ctx, t)
		if err != nil {
			return b, err
		}
		b.roots = append(b.roots, s)
		switch {
		case t.kind == subject.ZoneKind:
			b.queries = append(b.queries, statusQuery{fields: fields.Set{v1alpha1.FieldZone: s.Zone}})
		case t.kind != subject.InstanceKind && slices.Contains(subject.FleetKinds, t.kind):
			b.queries = append(b.queries, statusQuery{fields: fields.Set{v1alpha1.FieldKind: subject.InstanceKind.Kind}})
		}
	}
	if len(b.roots) < len(targets) {
		b.roots = nil // Whole kinds are among them: what is found is wanted.
	}
	return b, nil
}

// selectItems leaves out what the queries find beside the roots and what belongs to them.
func (b subtreeSelection) selectItems(w statusSet) []v1alpha1.SyncStatus {
	return slices.DeleteFunc(w.sortedItems(), func(s v1alpha1.SyncStatus) bool { return !b.isSelected(w, &s) })
}

// isPartOf is true for a record of a zone and an instance of a cluster.
func isPartOf(s, to *v1alpha1.SyncStatus) bool {
	switch {
	case s.Namespace != to.Namespace:
		return false
	case to.ObjectRef.Kind == subject.ZoneKind.Kind:
		return s.ObjectRef.Kind != subject.ZoneKind.Kind && isInZone(s, to.Zone)
	case s.ObjectRef.Kind == subject.InstanceKind.Kind:
		return to.ObjectRef.Kind != subject.InstanceKind.Kind && slices.ContainsFunc(to.Servers, func(row v1alpha1.ServerStatus) bool {
			return row.Instance == s.ObjectRef.Name && row.Namespace == ""
		})
	}
	return false
}

// isInZone compares the zones of an object; a DNSEndpoint can have several.
func isInZone(s *v1alpha1.SyncStatus, zone string) bool {
	return slices.Contains(strings.Split(s.Zone, ","), zone)
}

// isSelected is true for the roots and all that is part of one; for everything when there are no roots.
func (b subtreeSelection) isSelected(w statusSet, s *v1alpha1.SyncStatus) bool {
	if len(b.roots) == 0 {
		return true
	}
	return slices.ContainsFunc(b.roots, func(r *v1alpha1.SyncStatus) bool {
		if now := w[keyOf(r)]; now != nil {
			r = now
		}
		return keyOf(r) == keyOf(s) || isPartOf(s, r)
	})
}
