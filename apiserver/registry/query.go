package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// maxLimit bounds the objects of one page. A request without a limit gets everything.
const maxLimit = 10000

// maxTerms bounds the requirements of selectors and their values. All watches of a namespace compare theirs with each of its changes, and the
// changes of all namespaces wait for that.
const maxTerms = 1000

// query selects SyncStatus objects.
type query struct {
	namespace string // "" for all
	labels    labels.Selector
	fields    fields.Selector
	// limit bounds a page; 0 is no limit. continueAt is the token of the page before.
	limit      int64
	continueAt string
}

var _ store.Selector = &query{}

// newQuery reads the query of a request. Errors are API errors.
func newQuery(ctx context.Context, o *internalversion.ListOptions) (*query, error) {
	q := &query{namespace: request.NamespaceValue(ctx), labels: o.LabelSelector, fields: o.FieldSelector, limit: o.Limit, continueAt: o.Continue}
	q.setDefaults()
	if n := q.countTerms(); n > maxTerms {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the selectors have %d requirements and values: at most %d are possible", n, maxTerms))
	}
	return q, q.checkKinds()
}

func (q *query) countTerms() int {
	requirements, _ := q.labels.Requirements()
	n := len(requirements) + len(q.fields.Requirements())
	for _, r := range requirements {
		n += len(r.ValuesUnsorted())
	}
	return n
}

func (q *query) setDefaults() {
	if q.labels == nil {
		q.labels = labels.Everything()
	}
	if q.fields == nil {
		q.fields = fields.Everything()
	}
	q.limit = min(max(q.limit, 0), maxLimit)
	if ns, ok := q.fields.RequiresExactMatch(syncv1.FieldNamespace); ok && q.namespace == "" {
		q.namespace = ns
	}
}

// checkKinds refuses a kind that does not exist: it would select nothing, and a script would take that for good news.
func (q *query) checkKinds() error {
	for _, r := range q.fields.Requirements() {
		if r.Field != syncv1.FieldKind {
			continue
		}
		var known []string
		for _, k := range subject.Kinds() {
			known = append(known, k.Kind)
		}
		if !slices.Contains(known, r.Value) {
			return apierrors.NewBadRequest(fmt.Sprintf("%s is never %q: only %s", r.Field, r.Value, strings.Join(known, ", ")))
		}
	}
	return nil
}

// singleObject is the one object that a query is about, if it is about one.
func (q *query) singleObject() (desired.Key, bool) {
	name, ok := q.fields.RequiresExactMatch(syncv1.FieldName)
	if !ok || q.namespace == "" {
		return desired.Key{}, false
	}
	kind, object, ok := subject.ParseName(name)
	return desired.Key{Kind: kind.Kind, Namespace: q.namespace, Name: object}, ok
}

func (q *query) scope() store.Scope {
	s := store.Scope{Namespace: q.namespace}
	if key, ok := q.singleObject(); ok {
		s.Object = key
	}
	return s
}

// Matches implements store.Selector.
func (q *query) Matches(s *syncv1.SyncStatus) bool {
	return (q.namespace == "" || q.namespace == s.Namespace) &&
		q.labels.Matches(labels.Set(s.Labels)) && (q.fields.Empty() || q.fieldsMatch(s))
}

// fieldsMatch compares the fields. An object in several zones is in each of them.
func (q *query) fieldsMatch(s *syncv1.SyncStatus) bool {
	values := s.Fields()
	zones := strings.Split(s.Zone, ",")
	for _, r := range q.fields.Requirements() {
		is := values[r.Field] == r.Value || r.Field == syncv1.FieldZone && slices.Contains(zones, r.Value)
		if is == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// MayHaveMatched implements store.Selector: an object's labels, zone and verdict change, its kind and name never do.
func (q *query) MayHaveMatched(s *syncv1.SyncStatus) bool {
	if q.labels.Empty() && q.fields.Empty() {
		return false
	}
	values := s.Fields()
	for _, r := range q.fields.Requirements() {
		switch r.Field {
		case syncv1.FieldName, syncv1.FieldNamespace, syncv1.FieldKind:
			if (values[r.Field] == r.Value) == (r.Operator == selection.NotEquals) {
				return false
			}
		}
	}
	return q.namespace == "" || q.namespace == s.Namespace
}
