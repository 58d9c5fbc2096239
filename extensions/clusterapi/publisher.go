package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// publisher brings names to DNS as DNSEndpoints, and asks Lockstep's API server whether they are live.
type publisher struct {
	client client.Client
	// live reads past the cache.
	live     client.Reader
	children *apply.Children
}

// publish brings the name that an object asks for to DNS, or takes it back if the object asks for none, and returns what is known of
// it. A name that has become invalid stays as it was: API servers are not to vanish for a mistake in an annotation. An error is one
// that may pass; what is returned says so.
func (p *publisher) publish(ctx context.Context, o bearer) (status.PublishedName, error) {
	declared := declareEndpoint(o)
	name := status.PublishedName{Name: declared.name, Problem: declared.problem, Terminal: declared.invalid}
	found := &v1alpha1.DNSEndpoint{}
	err := client.IgnoreNotFound(p.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: endpointName(o)}, found))
	switch {
	case err != nil:
		err = fmt.Errorf("reading DNSEndpoint %s: %w", endpointName(o), err)
	case !wantsName(o):
		return status.PublishedName{}, p.withdraw(ctx, o, found)
	case declared.object == nil:
		return name, nil
	default:
		err = p.applyEndpoint(ctx, declared.object, found, &name)
	}
	if err != nil {
		name.Unread = err.Error()
	}
	return name, err
}

// withdraw deletes the DNSEndpoint of an object that asks for no name any more.
func (p *publisher) withdraw(ctx context.Context, o bearer, found *v1alpha1.DNSEndpoint) error {
	if holder := metav1.GetControllerOf(found); holder == nil || holder.UID != o.GetUID() || found.DeletionTimestamp != nil {
		return nil
	}
	if err := p.client.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting DNSEndpoint %s: %w", found.Name, err)
	}
	return nil
}

// applyEndpoint writes a DNSEndpoint if that changes something, and completes what is known of its name.
func (p *publisher) applyEndpoint(ctx context.Context, wanted, found *v1alpha1.DNSEndpoint, name *status.PublishedName) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return fmt.Errorf("encoding DNSEndpoint %s: %w", wanted.Name, err)
	}
	delete(fields, "status")
	child := &unstructured.Unstructured{Object: fields}
	child.SetAnnotations(wanted.Annotations)
	switch err := p.children.ApplyUnstructured(ctx, child, found); {
	case errors.Is(err, apply.ErrForeign):
		name.Problem = status.EndpointOfOthers(wanted.Name)
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		name.Problem = status.False(status.EndpointRefused, refusalOf(err))
		return nil
	case err != nil:
		return err
	}
	return p.observe(ctx, wanted, found, name)
}

// refusalOf returns the message of an error of kube-apiserver, without what came before it.
func refusalOf(err error) string {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return s.Status().Message
	}
	return err.Error()
}

// observe asks for the SyncStatus of a DNSEndpoint, which comes from live answers.
func (p *publisher) observe(ctx context.Context, wanted, found *v1alpha1.DNSEndpoint, name *status.PublishedName) error {
	answers := &syncv1.SyncStatus{}
	key := client.ObjectKey{Namespace: wanted.Namespace, Name: strings.ToLower(endpointKind.Kind) + "." + wanted.Name}
	if err := p.live.Get(ctx, key, answers); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading SyncStatus %s: %w", key.Name, err)
	}
	if isAbout(answers.ObjectRef, wanted, found) {
		name.Accepted = verdictOf(answers.Status.Conditions, syncv1.ConditionAccepted)
		name.Programmed = verdictOf(answers.Status.Conditions, syncv1.ConditionProgrammed)
		name.Propagated = verdictOf(answers.Status.Conditions, syncv1.ConditionPropagated)
	}
	return nil
}

// isAbout reports whether a SyncStatus is about the DNSEndpoint that is wanted: found, of which it is, may be an older one, or have been
// changed by somebody else.
func isAbout(ref syncv1.ObjectReference, wanted, found *v1alpha1.DNSEndpoint) bool {
	return found.UID != "" && ref.UID == found.UID && ref.Generation == found.Generation && equality.Semantic.DeepEqual(found.Spec, wanted.Spec)
}

// verdictOf returns a condition, zero if there is none.
func verdictOf(conditions []metav1.Condition, kind string) status.Verdict {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return status.Verdict{}
	}
	return status.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}
}
