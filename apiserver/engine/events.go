package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// follow feeds informer events to the index and to those who watch.
func (e *Engine) follow() error {
	for kind, inf := range e.informers.byKind {
		if err := e.informers.onEvent(inf, func(o metav1.Object, gone bool) { e.changed(kind, o, gone) }); err != nil {
			return err
		}
	}
	return e.informers.onEvent(e.informers.pods, func(metav1.Object, bool) { e.fleetChanged() })
}

// changed takes note of an event about an object of a kind that has a SyncStatus.
func (e *Engine) changed(kind string, o metav1.Object, gone bool) {
	key := object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	concerned := e.index.apply(key)
	if gone {
		e.memory.bury(key, o, blank())
	}
	e.hub.poke(append(concerned, key)...)
	if e.informers.sources[kind] == nil && e.informers.byKind[kind] != e.informers.zones {
		e.fleetChanged()
	}
}

func (e *Engine) fleetChanged() {
	e.index.fleet.Add(1)
	e.hub.pokeFleet()
}

// onEvent calls back with the last state of an object that came, changed or went. Two objects that had one name after
// another may be told as one change.
func (i *Informers) onEvent(inf cache.SharedIndexInformer, call func(o metav1.Object, gone bool)) error {
	with := func(o any, gone bool) {
		if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = t.Obj
		}
		if m, ok := o.(metav1.Object); ok {
			call(m, gone)
		}
	}
	handler, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { with(o, false) },
		UpdateFunc: func(_, o any) { with(o, false) },
		DeleteFunc: func(o any) { with(o, true) },
	})
	if err == nil {
		i.handled = append(i.handled, handler.HasSynced)
	}
	return err
}
