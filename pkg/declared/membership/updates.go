package membership

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Affected is an object whose role in a zone is another one now, or that has changed itself and has a role there. Zone is
// the zero value for an object that has no role anywhere: an orphan. Object is the zero value for a zone that is asked for other DS records.
//
// With By it stands for all zones at and below a name of which Fleet's RefusalOf or SigningParents may be others, because By was or is as it
// is, or has or had an NSRecord there: Concerned lists them.
type Affected struct {
	Zone   ZoneKey
	Object source.ObjectKey
	By     *v1beta1.DNSZone
	// Below is canonical.
	Below string
}

// besides are the zones that a zone may keep from being served: the others at or below its name.
func (z *zoneEntry) besides() []Affected {
	if z.name == "" {
		return nil
	}
	return []Affected{{By: z.DNSZone, Below: z.name}}
}

// Concerned lists the zones for which an Affected with By stands: those that share servers with By, or with one of them, and so on, and those
// of its namespace, which it may delegate on any servers.
func (f *Fleet) Concerned(a Affected, among *Cache) (keys []ZoneKey) {
	among.mu.RLock()
	var others []*v1beta1.DNSZone
	for z := range among.below[a.Below] {
		if others = append(others, z.DNSZone); z.Namespace == a.By.Namespace {
			keys = append(keys, z.key)
		}
	}
	among.mu.RUnlock()
	for _, met := range f.meeting(a.By, others)[1:] {
		if met.Namespace != a.By.Namespace {
			keys = append(keys, KeyOfZone(met.DNSZone))
		}
	}
	return slices.DeleteFunc(keys, func(key ZoneKey) bool { return key == KeyOfZone(a.By) })
}

// SetObject takes over an object as it is now.
func (c *Cache) SetObject(o source.Object) []Affected {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := source.KeyOf(o)
	known := c.objects[key]
	if known == nil {
		known = &objectEntry{Object: o, names: namesAbove(o)}
		c.objects[key] = known
		c.indexObject(known, true)
		return c.updateRoles(known, true)
	}
	changed := !sameForPass(known.Object, o)
	if c.KeepsStatuses && isStatusReplaced(known.Object, o) {
		o, changed = keepStatus(known.Object, o), true
	}
	c.indexObject(known, false)
	if known.Object = o; changed {
		known.names = namesAbove(o)
	}
	c.indexObject(known, true)
	return c.updateRoles(known, changed)
}

// RemoveObject forgets an object that does not exist any more; it was last as given. Zones that have released it before
// are not affected.
func (c *Cache) RemoveObject(last source.Object) []Affected {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := source.KeyOf(last)
	o := c.objects[key]
	if o == nil {
		return nil
	}
	released := last.GetDeletionTimestamp() != nil && !hasFinalizer(last)
	var affected []Affected
	for _, r := range o.roles {
		delete(r.zone.objects, o)
		if c.exists(r.zone) && (r.role == Selected || !released) {
			affected = append(affected, Affected{Zone: r.zone.key, Object: key})
		}
	}
	c.indexObject(o, false)
	delete(c.objects, key)
	o.roles = nil
	affected = append(affected, c.updateDelegation(o)...)
	return affected
}

// SetNamespace takes over the labels of a namespace.
func (c *Cache) SetNamespace(name string, labels map[string]string) []Affected {
	return slices.Concat(slices.Collect(c.NamespaceSteps(name, labels))...)
}

// AssumeNamespace takes over a namespace of which nothing but the name is known, unless more is.
func (c *Cache) AssumeNamespace(name string) {
	c.mu.RLock()
	_, exists := c.namespaces[name]
	c.mu.RUnlock()
	if !exists {
		c.SetNamespace(name, map[string]string{corev1.LabelMetadataName: name})
	}
}

// RemoveNamespace forgets a namespace that does not exist any more.
func (c *Cache) RemoveNamespace(name string) []Affected {
	return slices.Concat(slices.Collect(c.NamespaceRemovalSteps(name))...)
}

// SetZone takes over a zone as it is now.
func (c *Cache) SetZone(zone *v1beta1.DNSZone) []Affected {
	return slices.Concat(slices.Collect(c.ZoneSteps(zone))...)
}

// RemoveZone forgets a zone that does not exist any more.
func (c *Cache) RemoveZone(key ZoneKey) []Affected {
	return slices.Concat(slices.Collect(c.ZoneRemovalSteps(key))...)
}

// updateRoles finds an object's roles anew and returns the zones in which they changed: with changed, all in which it has
// or had one.
func (c *Cache) updateRoles(o *objectEntry, changed bool) []Affected {
	key, before := o.key(), o.roles
	o.roles = c.rolesOf(o.Object)
	var affected []Affected
	for _, r := range o.roles {
		r.zone.objects[o] = r.role
		if changed || before.in(r.zone) != r.role {
			affected = append(affected, Affected{Zone: r.zone.key, Object: key})
		}
	}
	for _, r := range before {
		if o.roles.in(r.zone) != NoRole {
			continue
		}
		if delete(r.zone.objects, o); c.exists(r.zone) {
			affected = append(affected, Affected{Zone: r.zone.key, Object: key})
		}
	}
	if len(o.roles) == 0 && (changed || len(before) > 0) {
		affected = append(affected, Affected{Object: key})
	}
	return append(affected, c.updateDelegation(o)...)
}

// selectsSame reports whether a change of a zone leaves every object its role.
func selectsSame(a, b *v1beta1.DNSZone) bool {
	return a.Spec.ZoneName == b.Spec.ZoneName && a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		a.Annotations[v1beta1.AllowEndpointNamespacesAnnotation] == b.Annotations[v1beta1.AllowEndpointNamespacesAnnotation] &&
		equality.Semantic.DeepEqual(a.Spec.RecordsFrom, b.Spec.RecordsFrom)
}

// sameForPass reports whether a change of an object leaves a pass over its zone nothing to do. What its status says does not matter to a
// pass; where the status says its data is, matters to its roles.
func sameForPass(a, b source.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && hasFinalizer(a) == hasFinalizer(b) &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// isStatusReplaced reports whether somebody else has replaced the status of a DNSEndpoint. external-dns does, by a PUT of its own idea of
// the status, which has no conditions and no zones. We never take a condition away.
func isStatusReplaced(before, after source.Object) bool {
	a, ok := before.(*v1alpha1.DNSEndpoint)
	b, also := after.(*v1alpha1.DNSEndpoint)
	return ok && also && a.UID == b.UID && len(a.Status.Conditions) > 0 && len(b.Status.Conditions) == 0
}

// keepStatus gives a DNSEndpoint the status that it had before: it still names the zones that hold data of it. The next status that is
// written names them again.
func keepStatus(before, after source.Object) source.Object {
	kept := after.(*v1alpha1.DNSEndpoint).DeepCopy()
	kept.Status = before.(*v1alpha1.DNSEndpoint).Status
	return kept
}

// ZoneHandler keeps the cache's zones current as the handler of an informer of zones.
func (c *Cache) ZoneHandler() toolscache.ResourceEventHandler {
	return handlerOf(func(zone *v1beta1.DNSZone) { c.SetZone(zone) }, func(zone *v1beta1.DNSZone) { c.RemoveZone(KeyOfZone(zone)) })
}

// NamespaceHandler keeps the cache's namespaces current as the handler of an informer of namespaces or of their metadata.
func (c *Cache) NamespaceHandler() toolscache.ResourceEventHandler {
	return handlerOf(func(o metav1.Object) { c.SetNamespace(o.GetName(), o.GetLabels()) }, func(o metav1.Object) { c.RemoveNamespace(o.GetName()) })
}

func handlerOf[T any](set, remove func(T)) toolscache.ResourceEventHandler {
	setAny := func(obj any) {
		if o, ok := obj.(T); ok {
			set(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    setAny,
		UpdateFunc: func(_, obj any) { setAny(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if o, ok := obj.(T); ok {
				remove(o)
			}
		},
	}
}
