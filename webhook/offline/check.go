package offline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/pkg/kube/schema"
	"github.com/lockstep-dns/lockstep/pkg/kube/spelling"
	"github.com/lockstep-dns/lockstep/webhook/review"
)

// Checker knows the definitions that this build comes with. It can check many times, not at the same time.
type Checker struct {
	kinds  schema.Kinds
	scheme *runtime.Scheme
}

// definitions are read once, and the rules of each compiled once: that takes longer than checking many objects.
var definitions = sync.OnceValues(func() (schema.Kinds, error) { return schema.Load(manifests.Definitions()) })

// NewChecker reads the definitions.
func NewChecker() (*Checker, error) {
	kinds, err := definitions()
	if err != nil {
		return nil, fmt.Errorf("loading the definitions: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	return &Checker{kinds, scheme}, nil
}

// Check returns what is wrong or doubtful with the objects, by file and line, and how many objects are of our kinds. Those
// of a namespaced kind that name no namespace are taken to be in the given one. An object that is among those before is an
// update of that one; what is only before is not looked at.
func (c *Checker) Check(ctx context.Context, objects, before []manifest.Object, namespace string) (findings []Finding, checked int, err error) {
	r := checkRun{Checker: c, seen: map[string]manifest.Object{}, before: map[string]manifest.Object{}}
	for _, o := range before {
		if kind, known := r.kinds[o.GroupVersionKind()]; known {
			setNamespace(o, kind, namespace)
			r.before[objectName(o)] = o
		}
	}
	for _, o := range objects {
		if err := r.checkObject(ctx, o, namespace); err != nil {
			return nil, 0, err
		}
	}
	results, err := review.Batch(ctx, r.typed)
	if err != nil {
		return nil, 0, fmt.Errorf("reviewing the objects together: %w", err)
	}
	for i, result := range results {
		if r.broken[i] {
			continue // It would not come to a review.
		}
		r.addProblems(r.sources[i], "admission", result.Problems)
		for _, warning := range result.Warnings {
			path, _, _ := strings.Cut(warning, ": ")
			if !isPath(path) {
				path = ""
			}
			r.addFinding(r.sources[i], Warning, "admission", path, warning)
		}
		for _, found := range result.Traps {
			r.addFinding(r.sources[i], Warning, found.ID, found.Field, found.Text)
		}
	}
	slices.SortStableFunc(r.findings, compareFindings)
	return r.findings, r.checked, nil
}

// isPath reports whether the beginning of a warning is the path of a field.
func isPath(text string) bool {
	top, _, _ := strings.Cut(text, ".")
	return top == "spec" || text == "metadata.labels"
}

// checkRun is one check.
type checkRun struct {
	*Checker
	checked  int
	findings []Finding
	// seen are the objects by kind, namespace and name.
	seen map[string]manifest.Object
	// before are the objects as they were, by the same.
	before map[string]manifest.Object
	// typed are the objects that take part in the reviews, with where they are from and whether they are broken already.
	typed   []client.Object
	sources []manifest.Object
	broken  []bool
}

// checkObject checks an object by itself.
func (r *checkRun) checkObject(ctx context.Context, o manifest.Object, namespace string) error {
	gvk := o.GroupVersionKind()
	kind, known := r.kinds[gvk]
	switch gvk {
	case corev1.SchemeGroupVersion.WithKind("Namespace"): // Zones select records by its labels.
		return r.addTyped(o, false)
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"): // Servers may have their files from it.
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		return r.addTyped(o, false)
	}
	if !known {
		if meant := r.meantKind(gvk); meant.Version != "" && meant.Version != gvk.Version {
			r.checked++
			r.addFinding(o, Error, "kind", "apiVersion", fmt.Sprintf("apiVersion: %s has no kind %s: write %s", o.GetAPIVersion(), gvk.Kind, meant.GroupVersion()))
		} else if meant.Kind != "" {
			r.checked++
			r.addFinding(o, Error, "kind", "kind", fmt.Sprintf("kind: %s has no kind %s: write %s", o.GetAPIVersion(), gvk.Kind, meant.Kind))
		} else if names := r.kindNames(gvk.Group); len(names) > 0 {
			r.checked++
			r.addFinding(o, Error, "kind", "kind", fmt.Sprintf("kind: %s has no kind %s; the group has %s", o.GetAPIVersion(), gvk.Kind, strings.Join(names, ", ")))
		} else if meant := r.mistypedGroup(gvk); meant != "" {
			r.checked++
			r.addFinding(o, Error, "kind", "apiVersion", fmt.Sprintf("apiVersion: %s has no kind %s: write %s", o.GetAPIVersion(), gvk.Kind, meant))
		}
		return nil
	}
	r.checked++
	if problems := checkMetadataTypes(o.Object); len(problems) > 0 {
		r.addProblems(o, "metadata", problems)
		return nil // kubectl does not send it.
	}
	setNamespace(o, kind, namespace)
	count := len(r.findings)
	r.checkDuplicate(o)
	r.checkMetadata(o, kind)
	delete(o.Object, "status") // A creation does not take it.
	old, err := r.storedBefore(ctx, o, kind)
	if err != nil {
		return err
	}
	nulls := nullFields(nil, map[string]any(o.Object), map[string]bool{})
	problems, err := kind.Admit(ctx, o.Object, old)
	if err != nil {
		return fmt.Errorf("checking %s: %w", objectName(o), err)
	}
	r.addProblems(o, "schema", adviseQuotes(problems, nulls, o.IsEmpty))
	return r.addTyped(o, len(r.findings) > count)
}

// storedBefore returns what an object was before, as it was stored: with defaults. It is nil when there was none that could be stored.
func (r *checkRun) storedBefore(ctx context.Context, o manifest.Object, kind *schema.Kind) (map[string]any, error) {
	before, found := r.before[objectName(o)]
	if !found {
		return nil, nil
	}
	delete(before.Object, "status")
	problems, err := kind.Admit(ctx, before.Object, nil)
	if err != nil {
		return nil, fmt.Errorf("checking what %s was: %w", objectName(o), err)
	}
	if len(problems) > 0 {
		return nil, nil
	}
	return before.Object, nil
}

// setNamespace puts an object into the namespace that it is in.
func setNamespace(o manifest.Object, kind *schema.Kind, namespace string) {
	switch {
	case !kind.Namespaced():
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(namespace)
	}
}

// addTyped has an object take part in the reviews. A broken zone or server still does: what refers to it is not to blame. A
// broken record is not there.
func (r *checkRun) addTyped(o manifest.Object, broken bool) error {
	object, err := r.scheme.New(o.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("making a %s: %w", o.GetKind(), err)
	}
	typed, ok := object.(client.Object)
	_, record := object.(v1beta1.Record)
	if !ok || (broken && record) || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object) != nil {
		return nil
	}
	r.typed, r.sources, r.broken = append(r.typed, typed), append(r.sources, o), append(r.broken, broken)
	return nil
}

// checkDuplicate finds objects that would overwrite each other.
func (r *checkRun) checkDuplicate(o manifest.Object) {
	id := objectName(o)
	if first, again := r.seen[id]; again && o.GetName() != "" {
		r.addFinding(o, Error, "twice", "metadata.name", fmt.Sprintf("metadata.name: %s:%d declares this object already; the later one would overwrite it", first.File, first.Line("")))
		return
	}
	r.seen[id] = o
}

// mistypedGroup returns the API version that the object of an unknown one was meant to have, "" if it is nobody's of ours: it has one of our
// kinds, and no group or almost one of ours.
func (r *checkRun) mistypedGroup(gvk kubeschema.GroupVersionKind) string {
	for known := range r.kinds {
		if known.Kind == gvk.Kind && (gvk.Group == "" || spelling.Nearest(gvk.Group, known.Group) != "") {
			return known.GroupVersion().String()
		}
	}
	return ""
}

// meantKind returns the kind of an unknown one's group that is written almost as that one; none if there is none.
func (r *checkRun) meantKind(gvk kubeschema.GroupVersionKind) kubeschema.GroupVersionKind {
	byName := map[string]kubeschema.GroupVersionKind{}
	for known := range r.kinds {
		if known.Group == gvk.Group {
			byName[known.Kind] = known
		}
	}
	return byName[spelling.Nearest(gvk.Kind, slices.Collect(maps.Keys(byName))...)]
}

// kindNames returns the kinds of a group, none when it is not ours.
func (r *checkRun) kindNames(group string) []string {
	var names []string
	for gvk := range r.kinds {
		if gvk.Group == group {
			names = append(names, gvk.Version+" "+gvk.Kind)
		}
	}
	slices.Sort(names)
	return names
}

func (r *checkRun) addProblems(o manifest.Object, rule string, problems field.ErrorList) {
	for _, problem := range problems {
		r.addFinding(o, Error, rule, problem.Field, problem.Error())
	}
}

func (r *checkRun) addFinding(o manifest.Object, level Level, rule, path, message string) {
	r.findings = append(r.findings, Finding{
		File: o.File, Line: o.Line(path), Level: level, Rule: rule, Field: path, Message: message,
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
	})
}

// objectName names an object as messages do: ARecord dns/www.
func objectName(o manifest.Object) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}
