package externaldns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1alpha1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

const (
	// fieldOwner is the manager of the fields that are written.
	fieldOwner = "lockstep-externaldns"
	// pageSize is how many DNSEndpoints are listed at a time.
	pageSize = 500
	// releaseTimeout is how long an object that is being deleted is waited for, so that another one can have its name.
	releaseTimeout = 10 * time.Second
)

// sourceKinds are the kinds of external-dns' sources that can own a DNSEndpoint and have Events: those of which the name of the
// resource is that of one kind.
var sourceKinds = map[string]schema.GroupKind{
	"service":        {Kind: "Service"},
	"pod":            {Kind: "Pod"},
	"ingress":        {Group: "networking.k8s.io", Kind: "Ingress"},
	"httproute":      {Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"},
	"grpcroute":      {Group: "gateway.networking.k8s.io", Kind: "GRPCRoute"},
	"tlsroute":       {Group: "gateway.networking.k8s.io", Kind: "TLSRoute"},
	"tcproute":       {Group: "gateway.networking.k8s.io", Kind: "TCPRoute"},
	"udproute":       {Group: "gateway.networking.k8s.io", Kind: "UDPRoute"},
	"virtualservice": {Group: "networking.istio.io", Kind: "VirtualService"},
	"httpproxy":      {Group: "projectcontour.io", Kind: "HTTPProxy"},
	"route":          {Group: "route.openshift.io", Kind: "Route"},
}

// store keeps the DNSEndpoints of one external-dns.
type store struct {
	client client.Client
	owner  string
	// namespaces are those that it serves; empty for all.
	namespaces []string
	// zoneNamespaces is put on each DNSEndpoint as the consent to zones of other namespaces; empty for none.
	zoneNamespaces string
	// owned makes source objects owners of their DNSEndpoints.
	owned bool
}

// listStored returns the DNSEndpoints of this external-dns as they are stored now.
func (s *store) listStored(ctx context.Context) ([]v1alpha1.DNSEndpoint, error) {
	namespaces := s.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []v1alpha1.DNSEndpoint
	for _, namespace := range namespaces {
		list := &v1alpha1.DNSEndpointList{}
		for more := true; more; more = list.Continue != "" {
			err := s.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{ownerLabel: s.owner}, client.Limit(pageSize), client.Continue(list.Continue))
			if err != nil {
				return nil, fmt.Errorf("listing DNSEndpoints: %w", err)
			}
			all = append(all, list.Items...)
		}
	}
	return all, nil
}

// refusedError is the answer of kube-apiserver or of admission that an object cannot be as it is: to try again is no use.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// applyDeclaration stores what a source object declares, or deletes its DNSEndpoint. If that has left nothing to store, because the source object
// does not exist any more, it returns no error: external-dns is to find out by itself.
func (s *store) applyDeclaration(ctx context.Context, present *presentObjects, d sourceDeclaration) error {
	if len(d.endpoints) == 0 {
		return s.deleteStored(ctx, d.stored)
	}
	if d.stored != nil && d.stored.DeletionTimestamp != nil {
		if err := s.waitGone(ctx, d.stored); err != nil {
			return err
		}
		d.stored = nil
	}
	owner, err := s.readSource(ctx, present, d.resource)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.writeEndpoints(ctx, d, owner)
	if rest := withoutRefused(d.endpoints, err); len(rest) > 0 && len(rest) < len(d.endpoints) {
		d.endpoints = rest
		err = cmp.Or(s.writeEndpoints(ctx, d, owner), err)
	}
	return err
}

// writeEndpoints stores all endpoints of a declaration, or none. A new DNSEndpoint is created, which costs kube-apiserver less than a server-side
// apply, and cannot take over what somebody else has made under its name.
func (s *store) writeEndpoints(ctx context.Context, d sourceDeclaration, owner *metav1.PartialObjectMetadata) error {
	var err error
	if d.stored == nil {
		err = s.client.Create(ctx, s.declare(&v1alpha1.DNSEndpoint{}, d, owner), client.FieldOwner(fieldOwner))
	} else {
		err = s.patchStored(ctx, d, owner)
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.explainName(ctx, d.resource, err)
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return refusedError{err}
	case err != nil:
		return fmt.Errorf("storing the records of %s: %w", d.resource, err)
	}
	return nil
}

// patchStored changes what is ours in a DNSEndpoint that is stored. Only the list of owners is written as a whole, and only when it
// changes: then nobody may have changed the object since it was read.
func (s *store) patchStored(ctx context.Context, d sourceDeclaration, owner *metav1.PartialObjectMetadata) error {
	stored := d.stored
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		next := s.declare(stored.DeepCopy(), d, owner)
		annotations := map[string]any{sourceAnnotation: next.Annotations[sourceAnnotation], v1beta1.AllowZoneNamespacesAnnotation: nil}
		if s.zoneNamespaces != "" {
			annotations[v1beta1.AllowZoneNamespacesAnnotation] = s.zoneNamespaces
		}
		metadata := map[string]any{"uid": stored.UID, "labels": map[string]string{ownerLabel: s.owner}, "annotations": annotations}
		version := ""
		if !equality.Semantic.DeepEqual(stored.OwnerReferences, next.OwnerReferences) {
			metadata["ownerReferences"], version = next.OwnerReferences, stored.ResourceVersion
		}
		patch, err := apply.MergePatch(version, metadata, map[string]any{"spec": map[string]any{"endpoints": d.endpoints}})
		if err != nil {
			return err
		}
		err = s.client.Patch(ctx, next, patch, client.FieldOwner(fieldOwner))
		if !apierrors.IsConflict(err) {
			return err
		}
		current := &v1alpha1.DNSEndpoint{}
		if read := s.client.Get(ctx, client.ObjectKeyFromObject(stored), current); read != nil || current.UID != stored.UID {
			return cmp.Or(read, fmt.Errorf("DNSEndpoint %s/%s was deleted and made again by somebody else", stored.Namespace, stored.Name))
		}
		stored = current
		return err
	})
}

// refusedField is how the cause of a refusal names an endpoint.
var refusedField = regexp.MustCompile(`^spec\.endpoints\[([0-9]+)\]`)

// withoutRefused returns the endpoints that a refusal does not name: one that cannot be served does not keep the others of its source
// object from being so.
func withoutRefused(endpoints []*v1alpha1.Endpoint, err error) []*v1alpha1.Endpoint {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return endpoints
	}
	refused := map[int]bool{}
	for _, cause := range refusal.Status().Details.Causes {
		if match := refusedField.FindStringSubmatch(cause.Field); match != nil {
			n, _ := strconv.Atoi(match[1])
			refused[n] = true
		}
	}
	var rest []*v1alpha1.Endpoint
	for i, e := range endpoints {
		if !refused[i] {
			rest = append(rest, e)
		}
	}
	return rest
}

// explainName returns why the name of a source object's DNSEndpoint is taken: by somebody else, or by a writer of the same owner that was quicker.
func (s *store) explainName(ctx context.Context, r resource, taken error) error {
	o := &v1alpha1.DNSEndpoint{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: r.objectName(s.owner)}, o); err != nil {
		return fmt.Errorf("reading what has the name of the records of %s: %w", r, err)
	}
	if _, ours := sourceOf(o, s.owner); ours {
		return taken
	}
	return refusedError{fmt.Errorf("a DNSEndpoint %s exists already, and was not made by external-dns: delete or rename it", o.Name)}
}

func (s *store) deleteStored(ctx context.Context, o *v1alpha1.DNSEndpoint) error {
	if o == nil || o.DeletionTimestamp != nil {
		return nil
	}
	if err := client.IgnoreNotFound(s.client.Delete(ctx, o, client.Preconditions{UID: &o.UID})); err != nil {
		return fmt.Errorf("deleting DNSEndpoint %s/%s: %w", o.Namespace, o.Name, err)
	}
	return nil
}

// waitGone waits until a DNSEndpoint that is being deleted is gone: what was applied to it would go with it.
func (s *store) waitGone(ctx context.Context, o *v1alpha1.DNSEndpoint) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, releaseTimeout, true, func(ctx context.Context) (bool, error) {
		current := &v1alpha1.DNSEndpoint{}
		err := s.client.Get(ctx, client.ObjectKeyFromObject(o), current)
		return apierrors.IsNotFound(err) || err == nil && current.UID != o.UID, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("DNSEndpoint %s/%s is still being deleted: %w", o.Namespace, o.Name, err)
	}
	return nil
}

// readSource returns the source object's metadata in the version that kube-apiserver prefers, nil if it is of a kind that cannot be read.
func (s *store) readSource(ctx context.Context, present *presentObjects, r resource) (*metav1.PartialObjectMetadata, error) {
	mapping, err := s.sourceMapping(r)
	if mapping == nil {
		return nil, err
	}
	o, err := present.get(ctx, mapping.GroupVersionKind, client.ObjectKey{Namespace: r.namespace, Name: r.name})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return o, err
}

// sourceMapping returns how kube-apiserver serves the kind of a source object, nil if that is not one of sourceKinds or not installed.
func (s *store) sourceMapping(r resource) (*meta.RESTMapping, error) {
	kind, known := sourceKinds[strings.ToLower(r.kind)]
	if !known {
		return nil, nil
	}
	mapping, err := s.client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding the versions of %s: %w", kind, err)
	}
	return mapping, nil
}

// declare puts what a source object declares into its DNSEndpoint, new or as it is stored, and leaves alone what others have put there.
func (s *store) declare(o *v1alpha1.DNSEndpoint, d sourceDeclaration, owner *metav1.PartialObjectMetadata) *v1alpha1.DNSEndpoint {
	o.Namespace, o.Name = d.resource.namespace, d.resource.objectName(s.owner)
	metav1.SetMetaDataLabel(&o.ObjectMeta, ownerLabel, s.owner)
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, sourceAnnotation, d.resource.String())
	delete(o.Annotations, v1beta1.AllowZoneNamespacesAnnotation)
	if s.zoneNamespaces != "" {
		o.Annotations[v1beta1.AllowZoneNamespacesAnnotation] = s.zoneNamespaces
	}
	if owner != nil {
		o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == owner.Kind && r.Name == owner.Name })
		if s.owned {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID})
		}
	}
	o.Spec.Endpoints = d.endpoints
	return o
}

// waitPropagated waits until every server answers what is declared, or the context ends.
func (s *store) waitPropagated(ctx context.Context, d sourceDeclaration) {
	key := client.ObjectKey{Namespace: d.resource.namespace, Name: "dnsendpoint." + d.resource.objectName(s.owner)}
	_ = wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		verdict := &syncv1alpha1.SyncStatus{}
		if err := s.client.Get(ctx, key, verdict); err != nil {
			return len(d.endpoints) == 0 && apierrors.IsNotFound(err), nil
		}
		return len(d.endpoints) > 0 && (verdict.Status.Phase == syncv1alpha1.PhaseInSync || verdict.Status.Phase == syncv1alpha1.PhaseFailed), nil
	})
}

// serves reports whether objects of a namespace are served.
func (s *store) serves(namespace string) bool {
	return len(s.namespaces) == 0 || slices.Contains(s.namespaces, namespace)
}
