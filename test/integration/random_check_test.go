package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"

	"github.com/lockstep-dns/lockstep/test/model"
)

// problems lists everything that is not as the model says.
func (w *randomWorld) problems(ctx context.Context) ([]string, error) {
	servers, err := w.services(ctx)
	if err != nil {
		return nil, err
	}
	declared, verdicts := w.declared(), map[*model.Declaration]model.Verdict{}
	var problems []string
	facts := map[string]zoneFacts{}
	for _, z := range w.zones {
		content, some := z.Expect(declared[z], servers)
		serial, differences, err := w.serverProblems(ctx, z, content)
		if err != nil {
			return nil, err
		}
		problems = append(problems, differences...)
		programmed := 0
		for d, v := range some {
			verdicts[d] = v
			if v.Accepted() && !v.Blocked {
				programmed++
			}
		}
		problems = append(problems, w.zoneProblems(ctx, z, serial, programmed, len(some))...)
		facts[z.dnsName()] = zoneFacts{Object: z.Object, Serial: serial, Declared: len(some), Programmed: programmed}
	}
	objects, err := w.objectProblems(ctx, declared, verdicts)
	if problems = append(problems, objects...); err != nil || len(problems) > 0 {
		return problems, err
	}
	return w.sentenceProblems(ctx, facts, declared)
}

// serverProblems compares every server's copy of a zone with what it should hold.
func (w *randomWorld) serverProblems(ctx context.Context, z *zoneState, content map[string]model.RRset) (uint32, []string, error) {
	all, err := w.copies(ctx, z.dnsName(), w.transfer)
	if err != nil {
		return 0, nil, err
	}
	if len(all) != 4 {
		return 0, []string{fmt.Sprintf("%d servers serve %s, want 4", len(all), z.Name)}, nil
	}
	want := model.Lines(content)
	var problems []string
	for pod, c := range all {
		for _, d := range difference(want, c.lines) {
			problems = append(problems, fmt.Sprintf("%s %s: %s", pod, z.Name, d))
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return 0, problems, nil
	}
	agreed, err := commonCopy(all)
	if err != nil {
		problems = append(problems, fmt.Sprintf("%s: %v", z.Name, err))
	}
	return agreed.serial, problems, nil
}

// zoneProblems compares a zone's status with what it should say.
func (w *randomWorld) zoneProblems(ctx context.Context, z *zoneState, serial uint32, programmed, all int) []string {
	o := &v1beta1.DNSZone{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: z.Object}, o); err != nil {
		return []string{err.Error()}
	}
	l := objectProblems{of: "DNSZone " + z.Object}
	s := o.Status
	if programmed == all {
		l.condition(s.Conditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded", o.Generation)
	} else {
		l.condition(s.Conditions, "Ready", metav1.ConditionFalse, "PartialReconciliation", o.Generation)
	}
	l.want(s.Serial != nil && uint32(*s.Serial) == serial, "status.serial, %d is served", serial)
	l.want(int(s.ForeignRRsetsCount) == len(z.Foreign), "foreignRRsetsCount %d, want %d", s.ForeignRRsetsCount, len(z.Foreign))
	return l.all
}

// objectProblems compares all objects of the namespace with those that should be there, and what they say of themselves.
func (w *randomWorld) objectProblems(ctx context.Context, declared map[*zoneState][]*model.Declaration, verdicts map[*model.Declaration]model.Verdict) ([]string, error) {
	there, err := w.stored(ctx)
	if err != nil {
		return nil, err
	}
	outcomes := map[*model.Object][]outcome{}
	for z, ds := range declared {
		for _, d := range ds {
			outcomes[d.By] = append(outcomes[d.By], outcome{z, d, verdicts[d]})
		}
	}
	var problems []string
	for _, t := range w.objects {
		key := t.Kind + "/" + t.Name
		switch o := there[key].(type) {
		case nil:
			problems = append(problems, key+" is gone")
		case *v1alpha1.DNSEndpoint:
			problems = append(problems, endpointProblems(o, outcomes[t])...)
		case v1beta1.Record:
			problems = append(problems, recordProblems(o, t, outcomes[t][0])...)
		}
		delete(there, key)
	}
	for key, o := range there {
		problems = append(problems, fmt.Sprintf("%s should be gone (deleted at %v, finalizers %v)", key, o.GetDeletionTimestamp(), o.GetFinalizers()))
	}
	slices.Sort(problems)
	return problems, nil
}

// stored lists the objects of the namespace that declare DNS data, by kind/name.
func (w *randomWorld) stored(ctx context.Context) (map[string]client.Object, error) {
	lists := map[string]client.ObjectList{model.EndpointKind: &v1alpha1.DNSEndpointList{}}
	for _, kind := range v1beta1.RecordKinds {
		lists[kind.Kind] = kind.NewList().(client.ObjectList)
	}
	all := map[string]client.Object{}
	for kind, list := range lists {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return nil, err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			all[kind+"/"+o.(client.Object).GetName()] = o.(client.Object)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// outcome is what should have become of one declaration; the zone is nil when it belongs to none.
type outcome struct {
	zone        *zoneState
	declaration *model.Declaration
	verdict     model.Verdict
}

func recordProblems(r v1beta1.Record, t *model.Object, o outcome) []string {
	l := objectProblems{of: t.Kind + " " + t.Name}
	s, generation := r.GetRecordStatus(), r.GetGeneration()
	l.want(r.GetDeletionTimestamp() == nil, "it is being deleted")
	l.want(r.GetAnnotations()[v1beta1.FormerNamesAnnotation] == "", "annotation former-names %q", r.GetAnnotations()[v1beta1.FormerNamesAnnotation])
	if o.zone == nil {
		l.condition(s.Conditions, "Ready", metav1.ConditionFalse, "NotSelected", generation)
		l.want(s.Zone == "" && s.ZoneRef == nil && s.PublishedName == "", "zone %q, publishedName %q, want none", s.Zone, s.PublishedName)
		l.want(r.GetAnnotations()[v1beta1.ZoneAnnotation] == "", "annotation zone %q, want none", r.GetAnnotations()[v1beta1.ZoneAnnotation])
		l.want(!controllerutil.ContainsFinalizer(r, v1beta1.Finalizer), "it has the finalizer and no zone")
		return l.all
	}
	l.want(s.Zone == o.zone.dnsName() && s.ZoneRef != nil && s.ZoneRef.Name == o.zone.Object, "zone %q, want %q", s.Zone, o.zone.dnsName())
	l.want(r.GetAnnotations()[v1beta1.ZoneAnnotation] == o.zone.dnsName(), "annotation zone %q", r.GetAnnotations()[v1beta1.ZoneAnnotation])
	l.want(controllerutil.ContainsFinalizer(r, v1beta1.Finalizer), "it has no finalizer")
	l.want(s.ObservedGeneration == generation, "observedGeneration %d of %d", s.ObservedGeneration, generation)
	l.verdict(s.Conditions, o.verdict, generation)
	if o.verdict.Accepted() && !o.verdict.Blocked {
		l.condition(s.Conditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded", generation)
		l.want(s.PublishedName+"." == o.declaration.Name, "publishedName %q, want %s", s.PublishedName, o.declaration.Name)
	} else {
		l.condition(s.Conditions, "Ready", metav1.ConditionFalse, "ReconcileFailed", generation)
		kept := o.verdict.Blocked && s.PublishedName+"." == o.declaration.Name
		l.want(s.PublishedName == "" || kept, "publishedName %q of a record that is not served", s.PublishedName)
	}
	return l.all
}

// endpointProblems expects a DNSEndpoint to be accepted or programmed when all of its endpoints are.
func endpointProblems(e *v1alpha1.DNSEndpoint, outcomes []outcome) []string {
	l := objectProblems{of: "DNSEndpoint " + e.Name}
	s := e.Status
	l.want(e.DeletionTimestamp == nil, "it is being deleted")
	l.want(e.Annotations[v1beta1.FormerNamesAnnotation] == "", "annotation former-names %q", e.Annotations[v1beta1.FormerNamesAnnotation])
	accepted, programmed := metav1.ConditionTrue, metav1.ConditionTrue
	var rrsets []string
	for _, o := range outcomes {
		if o.zone == nil || !o.verdict.Accepted() {
			accepted, programmed = metav1.ConditionFalse, metav1.ConditionFalse
		} else if o.verdict.Blocked {
			programmed = metav1.ConditionFalse
		} else if rr := o.declaration.Name + "/" + o.declaration.Type; !slices.Contains(rrsets, rr) {
			rrsets = append(rrsets, rr)
		}
	}
	l.condition(s.Conditions, "Accepted", accepted, "", e.Generation)
	l.condition(s.Conditions, "Programmed", programmed, "", e.Generation)
	var listed []string
	for _, z := range s.Zones {
		listed = append(listed, z.RRsets...)
	}
	slices.Sort(listed)
	slices.Sort(rrsets)
	l.want(slices.Equal(listed, rrsets), "status.zones lists %v, want %v", listed, rrsets)
	return l.all
}

// objectProblems collects what is wrong with one object.
type objectProblems struct {
	of  string
	all []string
}

func (l *objectProblems) want(ok bool, format string, args ...any) {
	if !ok {
		l.all = append(l.all, l.of+": "+fmt.Sprintf(format, args...))
	}
}

// condition wants a condition that describes the present generation. An empty reason is any.
func (l *objectProblems) condition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string, generation int64) {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		l.want(false, "it has no condition %s", kind)
		return
	}
	l.want(c.Status == status && (reason == "" || c.Reason == reason) && c.ObservedGeneration == generation,
		"%s is %s %s (generation %d of %d): %s; want %s %s", kind, c.Status, c.Reason, c.ObservedGeneration, generation, c.Message, status, reason)
}

// verdict wants the conditions that a verdict leads to. The loser's condition names the winner.
func (l *objectProblems) verdict(conditions []metav1.Condition, v model.Verdict, generation int64) {
	switch {
	case v.Invalid:
		l.condition(conditions, "Accepted", metav1.ConditionFalse, "Invalid", generation)
	case v.Winner != nil:
		l.condition(conditions, "Accepted", metav1.ConditionFalse, "Conflict", generation)
		if c := meta.FindStatusCondition(conditions, "Accepted"); c != nil && v.Winner.By != nil {
			l.want(strings.Contains(c.Message, v.Winner.By.Name), "its condition does not name the winner %s: %s", v.Winner.By, c.Message)
		}
	case v.Blocked:
		l.condition(conditions, "Accepted", metav1.ConditionTrue, "", generation)
		l.condition(conditions, "Programmed", metav1.ConditionFalse, "Conflict", generation)
	default:
		l.condition(conditions, "Accepted", metav1.ConditionTrue, "", generation)
		l.condition(conditions, "Programmed", metav1.ConditionTrue, "", generation)
	}
}
