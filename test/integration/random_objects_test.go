package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// namesOfType are the owner names that are used with each type. Few names are met often; those that foreign data has are
// used with CNAME alone, which cannot stand beside it.
var namesOfType = map[string][]string{
	"A":     {"h0", "h1", "h2", "h3", "h4", "h5", "c0", "c1", "c2", "sub0", "x.sub0", "ns.sub0", "@", "*", "WWW", "deep.er.and.deeper", "ns-extra"},
	"AAAA":  {"h0", "h1", "h2", "c0", "x.sub0", "ns.sub0", "@", "*.h3", "ns-extra"},
	"CNAME": {"c0", "c1", "c2", "c3", "legacy-0", "legacy-1", "ns-extra"},
	"NS":    {"sub0", "sub1", "@"},
	"TXT":   {"t0", "t1", "c1", "x.sub0", "_dmarc", "@"},
	"MX":    {"@", "h0", "h1", "c0", "*"},
	"SRV":   {"_sip._tcp", "_sip._udp", "x.sub1"},
	"CAA":   {"@", "h0", "c2"},
	"PTR":   {"1", "2", "3", "c3"},
	"SSHFP": {"h0", "c1", "@", "x.sub0"},
	"TLSA":  {"h0", "c1", "_443._tcp"},
	"HTTPS": {"h0", "c2", "@"},
}

// typesOfRecords are those that DNSRecords have.
var typesOfRecords = []string{"HTTPS", "SSHFP", "TLSA"}

func (w *randomWorld) value(rrtype string) string {
	switch rrtype {
	case "A":
		return fmt.Sprintf("192.0.2.%d", 1+w.rng.IntN(9))
	case "AAAA":
		return fmt.Sprintf("2001:db8::%d", 1+w.rng.IntN(9))
	case "TXT":
		return pick(w, "v=spf1 -all", "some text", "more", strings.Repeat("long ", 40))
	case "CAA":
		return pick(w, "ca.example.net", "other.example.net")
	case "NS":
		return pick(w, "ns.example.net.", "ns.sub0", "ns-extra")
	case "SSHFP":
		return pick(w, "1", "4") + " 2 " + strings.Repeat(pick(w, "AB", "CD"), 32)
	case "TLSA":
		return "3 1 1 " + strings.Repeat(pick(w, "ab", "cd"), 32)
	case "HTTPS":
		return pick(w, "1", "2") + " " + pick(w, ".", "one.example.net.")
	}
	return pick(w, "one.example.net.", "two.example.net.", "h0")
}

func (w *randomWorld) ttl() int64 { return pick[int64](w, 0, 0, 60, 300, 7200) }

func (w *randomWorld) label() string {
	return pick(w, "main", "main", "main", "main", "child", "child", "reverse", "extra", "none", "")
}

func (w *randomWorld) fresh(kind string) *model.Object {
	w.made++
	t := &model.Object{Kind: kind, Label: w.label(), TTL: w.ttl()}
	if kind == model.AnyTypeKind {
		t.Type = pick(w, typesOfRecords...)
	}
	t.Name, t.Owner = fmt.Sprintf("%s-%d", strings.ToLower(t.RRType()), w.made), pick(w, namesOfType[t.RRType()]...)
	w.fill(t)
	return t
}

func (w *randomWorld) fill(t *model.Object) {
	t.Values = nil
	for range 1 + w.rng.IntN(3) {
		if v := w.value(t.RRType()); !slices.Contains(t.Values, v) {
			t.Values = append(t.Values, v)
		}
	}
}

func (w *randomWorld) kind() string {
	return pick(w, append(slices.Sorted(maps.Keys(model.TypeOfKind)), model.AnyTypeKind)...)
}

func (w *randomWorld) stepCreate() bool {
	t := w.fresh(w.kind())
	if len(w.objects) > 80 || w.isFrozen(t) {
		return false
	}
	w.add(t)
	return true
}

// stepRace creates two objects at one name at the same time, which admission cannot see, or not always.
func (w *randomWorld) stepRace() bool {
	a, b := w.fresh(pick(w, "ARecord", "TXTRecord", "CNAMERecord", "MXRecord")), w.fresh("CNAMERecord")
	a.Owner, a.Label = pick(w, "c0", "c1", "c2", "c3"), pick(w, "main", "child")
	b.Owner, b.Label = a.Owner, a.Label
	if w.isFrozen(a) {
		return false
	}
	var group sync.WaitGroup
	var errs [2]error
	for i, t := range []*model.Object{a, b} {
		group.Go(func() { errs[i] = w.store(t) })
	}
	group.Wait()
	for i, t := range []*model.Object{a, b} {
		if errs[i] == nil {
			w.objects = append(w.objects, t)
		} else if !refused(errs[i]) {
			w.Fatal(errs[i])
		}
		w.touch(t)
		w.logStep("race: create %s: %v", t, short(errs[i]))
	}
	return true
}

func (w *randomWorld) stepChange() bool {
	t := w.any(func(t *model.Object) bool { return t.Kind != model.EndpointKind })
	if t == nil {
		return false
	}
	next := *t
	next.TTL = w.ttl()
	if next.Type != "" {
		next.Type = pick(w, typesOfRecords...)
	}
	if next.Type != t.Type || w.rng.IntN(3) > 0 {
		w.fill(&next)
	}
	w.change(t, next)
	return true
}

func (w *randomWorld) stepRename() bool {
	t := w.any(func(t *model.Object) bool { return t.Kind != model.EndpointKind })
	if t == nil {
		return false
	}
	next := *t
	next.Owner = pick(w, namesOfType[t.RRType()]...)
	w.change(t, next)
	return true
}

func (w *randomWorld) stepRelabel() bool {
	t := w.any(func(t *model.Object) bool { return t.Kind != model.EndpointKind })
	if t == nil {
		return false
	}
	next := *t
	next.Label = w.label()
	w.change(t, next)
	return true
}

func (w *randomWorld) stepDelete() bool {
	t := w.any(func(*model.Object) bool { return true })
	if t == nil {
		return false
	}
	w.remove(t)
	return true
}

// stepRecreate deletes an object and creates it again as soon as Kubernetes lets it, changed or not.
func (w *randomWorld) stepRecreate() bool {
	t := w.any(func(*model.Object) bool { return true })
	if t == nil || w.anyPaused() {
		return false
	}
	next := *t
	switch change := w.rng.IntN(2) == 0; {
	case change && t.Kind == model.EndpointKind:
		next.Endpoints = w.freshEndpoints()
	case change:
		w.fill(&next)
	}
	if w.isFrozen(&next) {
		return false
	}
	w.remove(t)
	var err error
	kube.Eventually(w, kube.Settle, func(context.Context) error {
		if err = w.store(&next); err != nil && !refused(err) {
			return err
		}
		return nil
	})
	w.logStep("recreate %s: %v", &next, short(err))
	if err == nil {
		w.objects = append(w.objects, &next)
	}
	return true
}

// any picks one of the things that may change now.
func (w *randomWorld) any(fits func(*model.Object) bool) *model.Object {
	var all []*model.Object
	for _, t := range w.objects {
		if fits(t) && !w.isFrozen(t) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(w, all...)
}

func (w *randomWorld) isFrozen(t *model.Object) bool {
	return slices.ContainsFunc(w.namesOf(t), func(name string) bool { return w.frozen[name] })
}

func (w *randomWorld) touch(t *model.Object) {
	for _, name := range w.namesOf(t) {
		w.touched[name] = true
	}
}

// add creates a thing. Admission may refuse it when something stands against it.
func (w *randomWorld) add(t *model.Object) {
	w.Helper()
	err := w.allowed(t, func() error { return w.store(t) }, func() { w.objects = append(w.objects, t) })
	w.touch(t)
	w.logStep("create %s: %v", t, short(err))
}

// store creates the object and notes its age.
func (w *randomWorld) store(t *model.Object) error {
	o := t.ToUnstructured(w.namespace)
	if err := w.client.Create(w.Context(), o); err != nil {
		return err
	}
	t.Created, t.UID = o.GetCreationTimestamp().Time, string(o.GetUID())
	return nil
}

// change makes a thing another. Admission may refuse that when something stands against it.
func (w *randomWorld) change(t *model.Object, next model.Object) {
	w.Helper()
	if w.isFrozen(&next) {
		return
	}
	w.touch(t)
	before := t.String()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"zone": orNull(next.Label)}}, "spec": next.Spec()})
	if err != nil {
		w.Fatal(err)
	}
	was := *t
	err = w.allowed(t, func() error {
		return w.client.Patch(w.Context(), t.ToUnstructured(w.namespace), client.RawPatch(types.MergePatchType, patch))
	}, func() { *t = next })
	if err != nil {
		*t = was
	}
	w.touch(t)
	w.logStep("change %s to %s: %v", before, &next, short(err))
}

func orNull(label string) any {
	if label == "" {
		return nil
	}
	return label
}

// allowed does something that admission may refuse, when the model shows a reason: afterwards, not all would be accepted
// that were before, or not the thing itself. The webhook's cache may be some moments behind.
func (w *randomWorld) allowed(t *model.Object, do func() error, then func()) error {
	w.Helper()
	things := slices.Clone(w.objects)
	before := w.losers()
	var err error
	for began := time.Now(); time.Since(began) < kube.Settle.Duration(); {
		if err = do(); !refused(err) {
			break
		}
		then()
		after := w.losers()
		w.objects = things
		if slices.ContainsFunc(after, func(l loser) bool { return l.by == t || !slices.Contains(before, l) }) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		w.Fatalf("nothing stands against it, and still: %v", err)
	}
	then()
	return nil
}

// loser is what a thing declares in vain.
type loser struct {
	by    *model.Object
	index int
	key   string
}

// losers are the declarations that are not accepted, as far as the model knows.
func (w *randomWorld) losers() []loser {
	var losers []loser
	for z, ds := range w.declared() {
		if z == nil {
			continue
		}
		_, verdicts := z.Expect(ds, model.Servers{})
		for d, v := range verdicts {
			if !v.Accepted() {
				losers = append(losers, loser{d.By, d.Index, d.Key()})
			}
		}
	}
	return losers
}

func refused(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }

func short(err error) string {
	if err == nil {
		return "done"
	}
	message := err.Error()
	return "refused: " + message[:min(len(message), 200)]
}

func (w *randomWorld) remove(t *model.Object) {
	w.Helper()
	w.touch(t)
	if err := w.client.Delete(w.Context(), t.ToUnstructured(w.namespace)); err != nil {
		w.Fatal(err)
	}
	w.objects = slices.DeleteFunc(w.objects, func(other *model.Object) bool { return other == t })
	w.logStep("delete %s", t)
}
