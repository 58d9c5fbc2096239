package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// MaxLimit bounds the objects of one page. A request without a limit gets everything.
const MaxLimit = 10000

// Query selects SyncStatus objects.
type Query struct {
	// Namespace to look in; "" for all.
	Namespace string
	// Labels and Fields select; nil selects everything.
	Labels labels.Selector
	Fields fields.Selector
	// Limit bounds a page; 0 is no limit. Continue is the token of the page before.
	Limit    int64
	Continue string
}

func (q *Query) setDefaults() {
	if q.Labels == nil {
		q.Labels = labels.Everything()
	}
	if q.Fields == nil {
		q.Fields = fields.Everything()
	}
	q.Limit = min(max(q.Limit, 0), MaxLimit)
	if ns, ok := q.Fields.RequiresExactMatch(syncv1.FieldNamespace); ok && q.Namespace == "" {
		q.Namespace = ns
	}
}

// named tells which single object a query is about, if it is.
func (q *Query) named() (syncstatus.Kind, object, bool) {
	name, ok := q.Fields.RequiresExactMatch(syncv1.FieldName)
	if !ok || q.Namespace == "" {
		return syncstatus.Kind{}, object{}, false
	}
	kind, of, ok := syncstatus.ParseName(name)
	return kind, object{Kind: kind.Kind, Namespace: q.Namespace, Name: of}, ok
}

// matches judges a complete SyncStatus.
func (q *Query) matches(s *syncv1.SyncStatus) bool {
	return s != nil && (q.Namespace == "" || q.Namespace == s.Namespace) &&
		q.Labels.Matches(labels.Set(s.Labels)) && (q.Fields.Empty() || q.fieldsMatch(s))
}

// fieldsMatch judges the fields. An object in several zones is in each of them.
func (q *Query) fieldsMatch(s *syncv1.SyncStatus) bool {
	values := s.Fields()
	zones := strings.Split(s.Zone, ",")
	for _, r := range q.Fields.Requirements() {
		is := values[r.Field] == r.Value || r.Field == syncv1.FieldZone && slices.Contains(zones, r.Value)
		if is == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// mayHaveMatched tells whether an object that does not match now can have matched before: its labels, zone and verdict
// change, its kind and name never do.
func (q *Query) mayHaveMatched(s *syncv1.SyncStatus) bool {
	if q.Labels.Empty() && q.Fields.Empty() {
		return false
	}
	values := s.Fields()
	for _, r := range q.Fields.Requirements() {
		switch r.Field {
		case syncv1.FieldName, syncv1.FieldNamespace, syncv1.FieldKind:
			if (values[r.Field] == r.Value) == (r.Operator == selection.NotEquals) {
				return false
			}
		}
	}
	return q.Namespace == "" || q.Namespace == s.Namespace
}

// page is a continue token: where the last page ended, and the revision of the first.
type page struct {
	Revision  uint64 `json:"rv"`
	Namespace string `json:"ns"`
	Name      string `json:"name"`
}

func (p page) token() string {
	raw, _ := json.Marshal(p) // strings and a number
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parsePage(token string) (page, error) {
	var p page
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("continue token %.40q is not one of this API's", token))
	}
	return p, nil
}

// List computes all SyncStatus objects that a query selects, sorted by namespace and name, from answers no older than
// Options.MaxAge; for a single object as Get does. Errors are API errors.
func (e *Engine) List(ctx context.Context, q Query) (*syncv1.SyncStatusList, error) {
	q.setDefaults()
	if err := e.ready(); err != nil {
		return nil, err
	}
	since := time.Now()
	if kind, key, ok := q.named(); ok {
		if err := e.freshen(ctx, kind, key); err != nil {
			return nil, err
		}
	} else {
		since = since.Add(-e.options.MaxAge)
	}
	keys, err := e.after(e.candidates(q), q.Continue)
	if err != nil {
		return nil, err
	}
	began := e.revisions.current()
	out := &syncv1.SyncStatusList{Items: []syncv1.SyncStatus{}}
	rest := e.fill(ctx, q, keys, since, out)
	e.complete(out, began)
	if q.Continue != "" {
		p, _ := parsePage(q.Continue) // after has parsed it
		out.ResourceVersion = formatRevision(p.Revision)
	}
	if len(rest) > 0 {
		e.more(out, q, keys[len(keys)-len(rest)-1], rest)
	}
	return out, nil
}

// more says that rest is to come after last. Whether last is in the page is not told: it may have been deleted meanwhile.
func (e *Engine) more(out *syncv1.SyncStatusList, q Query, last object, rest []object) {
	rev, _ := parseRevision(out.ResourceVersion) // our own
	out.Continue = page{rev, last.Namespace, nameOf(last)}.token()
	if q.Fields.Empty() {
		out.RemainingItemCount = new(int64(len(rest)))
	}
}

// fill computes keys in order until the page is full, and returns those that are left.
func (e *Engine) fill(ctx context.Context, q Query, keys []object, since time.Time, out *syncv1.SyncStatusList) []object {
	for len(keys) > 0 {
		n := len(keys)
		if q.Limit > 0 {
			n = min(n, int(q.Limit)-len(out.Items))
		}
		if n == 0 {
			break
		}
		found := slices.DeleteFunc(e.compute(ctx, keys[:n], since), func(s *syncv1.SyncStatus) bool { return !q.matches(s) })
		out.Items = slices.Grow(out.Items, len(found))
		for _, s := range found {
			out.Items = append(out.Items, *s)
		}
		keys = keys[n:]
	}
	return keys
}

// complete stamps a list's objects and gives it a resourceVersion at which it was true.
func (e *Engine) complete(out *syncv1.SyncStatusList, began uint64) {
	var changed []object
	for i := range out.Items {
		if _, news := e.memory.stamp(&out.Items[i]); news {
			changed = append(changed, objectOf(&out.Items[i]))
		}
	}
	out.ResourceVersion = formatRevision(e.revisions.current())
	// What was deleted while the list was made must not be in it, or nobody would ever tell.
	if gone := e.memory.gone(began); len(gone) > 0 {
		ended := map[object]bool{}
		for _, b := range gone {
			ended[b.object] = true
		}
		out.Items = slices.DeleteFunc(out.Items, func(s syncv1.SyncStatus) bool { return ended[objectOf(&s)] && !e.exists(objectOf(&s)) })
	}
	e.hub.poke(changed...)
}

func (e *Engine) exists(k object) bool {
	inf := e.informers.byKind[k.Kind]
	if inf == nil {
		return false
	}
	_, ok := get[metav1.Object](inf, k.Namespace, k.Name)
	return ok
}

// ofKind lists the objects of one kind in a namespace.
func (e *Engine) ofKind(kind, namespace string) []object {
	var keys []object
	for _, o := range inNamespace[metav1.Object](e.informers.byKind[kind], namespace) {
		keys = append(keys, object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return keys
}

// candidates lists the objects that a query may select, judged by what needs no server, in list order.
func (e *Engine) candidates(q Query) []object {
	if _, key, ok := q.named(); ok {
		if e.exists(key) {
			return []object{key}
		}
		return nil
	}
	kindIs, byKind := q.Fields.RequiresExactMatch(syncv1.FieldKind)
	name, byName := q.Fields.RequiresExactMatch(syncv1.FieldName)
	zone, byZone := q.Fields.RequiresExactMatch(syncv1.FieldZone)
	byZone = byZone && zone != "" // what no zone has is found by what is computed
	var keys []object
	for kind, inf := range e.informers.byKind {
		if byKind && kind != kindIs {
			continue
		}
		for _, o := range inNamespace[metav1.Object](inf, q.Namespace) {
			k := object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
			if q.Labels.Matches(labels.Set(o.GetLabels())) && (!byName || nameOf(k) == name) && (!byZone || slices.Contains(e.index.zoneNames(k), zone)) {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, compareObjects)
	return keys
}

// compareObjects is list order: namespace, then the SyncStatus's name.
func compareObjects(a, b object) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	if a.Kind != b.Kind {
		return strings.Compare(strings.ToLower(a.Kind), strings.ToLower(b.Kind))
	}
	return strings.Compare(a.Name, b.Name)
}

// after cuts off what earlier pages have had.
func (e *Engine) after(keys []object, token string) ([]object, error) {
	if token == "" {
		return keys, nil
	}
	p, err := parsePage(token)
	if err != nil {
		return nil, err
	}
	kind, name, ok := syncstatus.ParseName(p.Name)
	if !ok {
		return nil, apierrors.NewBadRequest("the continue token names no object of this API")
	}
	last := object{Kind: kind.Kind, Namespace: p.Namespace, Name: name}
	i, found := slices.BinarySearchFunc(keys, last, compareObjects)
	if found {
		i++
	}
	return keys[i:], nil
}
