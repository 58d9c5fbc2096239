package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/pkg/kube/spelling"
)

// pageSize is how many objects are listed at a time.
const pageSize = 500

// objectKey names an object of any kind.
type objectKey = source.ObjectKey

// cluster is the objects of a cluster, and what they would be.
type cluster struct {
	client client.Client
	// namespace is that of objects in files that name none.
	namespace string
	// before are the objects that there are, after those that there would be.
	before, after map[objectKey]source.Object
	refused       []Finding
	warnings      []Finding
	remarks       []string
	// heard are warnings about the object of the request that is under way.
	heard []string
	// unasked are the objects that admission did not see, by why; causes are in the order in which they were found.
	unasked map[string][]objectKey
	causes  []string
	// created is how many objects would be new.
	created int
}

// HandleWarningHeader implements rest.WarningHandler.
func (c *cluster) HandleWarningHeader(_ int, _, text string) { c.heard = append(c.heard, text) }

// takeWarnings notes what was heard about an object; lineOf is the line of a field, nil if the object is from no file.
func (c *cluster) takeWarnings(file string, key objectKey, lineOf func(path string) int) {
	for _, text := range c.heard {
		line := 0
		if lineOf != nil {
			path, _, _ := strings.Cut(text, ": ")
			line = lineOf(path)
		}
		c.warnings = append(c.warnings, Finding{file, line, key.Kind, key.Namespace, key.Name, text})
	}
	c.heard = nil
}

// addUnasked notes an object that admission did not see: objects of one cause are told together.
func (c *cluster) addUnasked(key objectKey, err error) {
	if c.unasked == nil {
		c.unasked = map[string][]objectKey{}
	}
	cause := strings.Replace(err.Error(), strconv.Quote(key.Name)+" is forbidden", "is forbidden", 1)
	if c.unasked[cause] == nil {
		c.causes = append(c.causes, cause)
	}
	c.unasked[cause] = append(c.unasked[cause], key)
}

func (c *cluster) remarkUnasked() []string {
	remarks := []string{}
	for _, cause := range c.causes {
		first, more := c.unasked[cause][0], len(c.unasked[cause])-1
		said := first.String() + " was"
		if more > 0 {
			said = fmt.Sprintf("%s and %d more were", first, more)
		}
		remarks = append(remarks, fmt.Sprintf("%s not asked of kube-apiserver, so admission may still refuse that; lockstep validate reads the files alone: %s", said, cause))
	}
	return remarks
}

// clusterScoped are our kinds without a namespace.
var clusterScoped = map[string]bool{"Bind9GlobalCluster": true, "ClusterBind9Provider": true, "ZoneGrant": true}

// listKinds are the kinds that decide what zones hold.
func listKinds() []client.ObjectList {
	lists := []client.ObjectList{
		&v1beta1.DNSZoneList{}, &v1beta1.Bind9InstanceList{}, &v1beta1.Bind9GlobalClusterList{}, &v1beta1.ClusterBind9ProviderList{},
		&v1beta1.ZoneGrantList{}, &v1beta1.DNSProviderList{}, &v1alpha1.DNSEndpointList{},
	}
	for _, k := range v1beta1.RecordKinds {
		lists = append(lists, k.NewList().(client.ObjectList))
	}
	return lists
}

// read reads the objects of all namespaces, or of the given ones if the user may read no others.
func (c *cluster) read(ctx context.Context, namespaces []string) error {
	c.before = map[objectKey]source.Object{}
	for _, list := range listKinds() {
		gvk, err := c.client.GroupVersionKindFor(list)
		if err != nil {
			return err
		}
		kind := strings.TrimSuffix(gvk.Kind, "List")
		err = c.readKind(ctx, kind, list, "")
		if apierrors.IsForbidden(err) && !clusterScoped[kind] {
			err = c.readKindIn(ctx, kind, list, namespaces)
		}
		switch {
		case meta.IsNoMatchError(err): // DNSEndpoints are optional.
		case apierrors.IsForbidden(err):
			c.addRemark("%ss are not taken into account: %v", kind, err)
		case err != nil:
			return fmt.Errorf("listing %ss: %w", kind, err)
		}
	}
	c.after = maps.Clone(c.before)
	return nil
}

// readKindIn reads the objects of a kind in some namespaces, for a user who may read no others.
func (c *cluster) readKindIn(ctx context.Context, kind string, list client.ObjectList, namespaces []string) error {
	for _, namespace := range namespaces {
		if err := c.readKind(ctx, kind, list, namespace); err != nil {
			return err
		}
	}
	c.addRemark("%ss of other namespaces are not taken into account: you may not list them", kind)
	return nil
}

// namespaceKind is the kind of namespaces. Only their labels count.
const namespaceKind = "Namespace"

// planNamespaces reads the namespaces, and has those in files be what they would be, if a zone selects records by their labels.
func (c *cluster) planNamespaces(ctx context.Context, declared []manifest.Object) error {
	selects := func(o source.Object) bool {
		zone, ok := o.(*v1beta1.DNSZone)
		return ok && slices.ContainsFunc(zone.Spec.RecordsFrom, func(from v1beta1.RecordSource) bool { return from.NamespaceSelector != nil })
	}
	if !slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(c.before)), slices.Collect(maps.Values(c.after))), selects) {
		return nil
	}
	list := &corev1.NamespaceList{}
	switch err := c.client.List(ctx, list); {
	case apierrors.IsForbidden(err):
		c.addRemark("labels of namespaces are not taken into account: %v", err)
		return nil
	case err != nil:
		return fmt.Errorf("listing namespaces: %w", err)
	}
	for i := range list.Items {
		key := objectKey{Kind: namespaceKind, Name: list.Items[i].Name}
		c.before[key], c.after[key] = &list.Items[i], &list.Items[i]
	}
	for _, o := range declared {
		labels := map[string]string{corev1.LabelMetadataName: o.GetName()} // kube-apiserver sets it.
		maps.Copy(labels, o.GetLabels())
		o.SetNamespace("")
		o.SetLabels(labels)
		if err := c.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) addRemark(format string, args ...any) {
	c.remarks = append(c.remarks, fmt.Sprintf(format, args...))
}

func (c *cluster) readKind(ctx context.Context, kind string, empty client.ObjectList, namespace string) error {
	for next := ""; ; {
		list := empty.DeepCopyObject().(client.ObjectList)
		if err := c.client.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		add := func(o runtime.Object) error {
			object := o.(source.Object)
			c.before[objectKey{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}] = object
			return nil
		}
		if err := meta.EachListItem(list, add); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// problemOf is why kubectl would not send an object of ours to kube-apiserver; nil if it would, or if the object is of another's kind.
func (c *cluster) problemOf(o manifest.Object) error {
	gvk, ours := o.GroupVersionKind(), map[string]string{}
	for known := range c.client.Scheme().AllKnownTypes() {
		if known.Group == v1beta1.GroupName || known.Group == v1alpha1.GroupName {
			ours[known.Kind] = known.GroupVersion().String()
		}
	}
	meant := spelling.Nearest(gvk.Kind, slices.Collect(maps.Keys(ours))...)
	switch {
	case c.client.Scheme().Recognizes(gvk):
		if o.GetName() == "" {
			return errors.New("metadata.name is missing: what is applied has a name of its own")
		}
		return nil
	case gvk.Group != v1beta1.GroupName && gvk.Group != v1alpha1.GroupName && (gvk.Group != "" || ours[gvk.Kind] == ""):
		return nil
	case meant == "":
		return fmt.Errorf("%s has no kind %s", o.GetAPIVersion(), o.GetKind())
	}
	return fmt.Errorf("%s has no kind %s: write apiVersion: %s and kind: %s", o.GetAPIVersion(), o.GetKind(), ours[meant], meant)
}

// apply has an object be what it would be after an apply. What is refused stays as it is.
func (c *cluster) apply(ctx context.Context, o manifest.Object) error {
	defer func() { c.takeWarnings(o.File, keyOf(&o), o.Line) }()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(&o), live)
	var stored *unstructured.Unstructured
	switch {
	case apierrors.IsNotFound(err):
		stored = o.DeepCopy()
		err = c.client.Create(ctx, stored, client.DryRunAll)
		defer c.countCreated(keyOf(&o))
	case err == nil:
		stored, err = c.patch(ctx, &o.Unstructured, live)
	}
	switch {
	case err == nil:
	case isUnasked(err):
		c.addUnasked(keyOf(&o), err)
		if stored, err = mergeLocally(&o.Unstructured, live); err != nil {
			return fmt.Errorf("%s: %w", keyOf(&o), err)
		}
	case isRefusal(err):
		c.refuse(o.File, o.Line(""), keyOf(&o), err)
		return nil
	default:
		return fmt.Errorf("%s: %w", keyOf(&o), err)
	}
	if err := c.set(stored); err != nil {
		c.refuse(o.File, o.Line(""), keyOf(&o), err)
	}
	return nil
}

// countCreated makes a new object younger than those before it, as it will be if they are applied in this order.
func (c *cluster) countCreated(key objectKey) {
	if o := c.after[key]; o != nil {
		c.created++
		o.SetCreationTimestamp(metav1.NewTime(time.Now().Add(time.Duration(c.created) * time.Second)))
	}
}

// patch applies an object over one that there is, in the way in which it was applied before: by the field manager that did, or by
// comparison with the annotation of kubectl apply.
func (c *cluster) patch(ctx context.Context, o, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored := o.DeepCopy()
	if manager := applierOf(live); manager != "" {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return stored, c.client.Patch(ctx, stored, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll)
	}
	patch, err := mergePatch(o, live)
	if err != nil {
		return nil, err
	}
	return stored, c.client.Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
}

// applierOf returns the field manager that has applied an object on the server's side; empty if none has.
func applierOf(live *unstructured.Unstructured) string {
	applied := `"f:spec"`
	if live.GetKind() == namespaceKind {
		applied = `"f:labels"`
	}
	for _, f := range live.GetManagedFields() {
		if f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), applied) {
			return f.Manager
		}
	}
	return ""
}

// mergePatch is what kubectl apply sends on the client's side: what the file no longer has is removed if it had it at the last apply.
func mergePatch(o, live *unstructured.Unstructured) ([]byte, error) {
	modified, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	original := []byte(live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"])
	return jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
}

// mergeLocally returns what an apply would probably store; live has no name if there is no such object, or it cannot be read.
func mergeLocally(o, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	merged := o.DeepCopy()
	if live.GetName() == "" {
		return merged, nil
	}
	patch, err := mergePatch(o, live)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	text, err := jsonpatch.MergePatch(current, patch)
	if err != nil {
		return nil, err
	}
	return merged, json.Unmarshal(text, merged)
}

// isUnasked reports whether a request did not come to admission: the user has no right to make it, or there is no such namespace or kind yet.
func isUnasked(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") && strings.Contains(err.Error(), " resource ")
}

// isRefusal reports whether kube-apiserver or admission says that it would not store an object.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err)
}

func (c *cluster) refuse(file string, line int, key objectKey, err error) {
	c.refused = append(c.refused, Finding{file, line, key.Kind, key.Namespace, key.Name, err.Error()})
}

// set has an object be there afterwards.
func (c *cluster) set(stored *unstructured.Unstructured) error {
	typed, err := c.client.Scheme().New(stored.GroupVersionKind())
	if err != nil {
		return err
	}
	text, err := json.Marshal(stored)
	if err == nil {
		err = json.Unmarshal(text, typed)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", keyOf(stored), err)
	}
	c.after[keyOf(stored)] = typed.(source.Object)
	return nil
}

// prune takes away the objects with the labels that no file has, in some namespaces and of cluster-scoped kinds.
func (c *cluster) prune(ctx context.Context, selector labels.Selector, kept map[objectKey]bool, namespaces map[string]bool) error {
	keys := slices.SortedFunc(maps.Keys(c.before), func(a, b objectKey) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		o := c.before[key]
		if kept[key] || key.Namespace != "" && !namespaces[key.Namespace] || o.GetDeletionTimestamp() != nil || len(o.GetOwnerReferences()) > 0 || !selector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		err := c.client.Delete(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
		c.takeWarnings("", key, nil)
		switch {
		case err == nil || apierrors.IsNotFound(err):
		case isUnasked(err):
			c.addUnasked(key, err)
		case isRefusal(err):
			c.refuse("", 0, key, err)
			continue
		default:
			return fmt.Errorf("deleting %s: %w", key, err)
		}
		delete(c.after, key)
	}
	return nil
}

func keyOf(o client.Object) objectKey {
	return objectKey{Kind: o.GetObjectKind().GroupVersionKind().Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}
