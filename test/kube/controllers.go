package kube

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// home is the namespace that Lockstep runs in.
const home = "lockstep-system"

// components are Lockstep's Deployments.
var components = []string{"lockstep-controller", "lockstep-fleet", "lockstep-apiserver", "lockstep-webhook"}

// KillControllers deletes the pods of the controller and of the fleet manager. Only a test that calls Disruptive may do that.
func KillControllers(ctx context.Context, c client.Client, grace int64) error {
	var errs []error
	for _, component := range []string{"controller", "fleet"} {
		var pods corev1.PodList
		errs = append(errs, c.List(ctx, &pods, client.InNamespace(home), client.MatchingLabels{"app.kubernetes.io/component": component}))
		for i := range pods.Items {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(grace))))
		}
	}
	return errors.Join(errs...)
}

// componentsRun returns an error unless all components are there, as their Deployments want them, and no pod of theirs is ending.
func componentsRun(ctx context.Context, c client.Client) error {
	for _, name := range components {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: home, Name: name}, &d); err != nil {
			return err
		}
		if s := d.Status; d.Spec.Replicas == nil || s.ObservedGeneration < d.Generation || s.AvailableReplicas != *d.Spec.Replicas || s.Replicas != s.UpdatedReplicas {
			return fmt.Errorf("the Deployment %s has %d of %d replicas available, %d of %d updated", name, s.AvailableReplicas, *d.Spec.Replicas, s.UpdatedReplicas, s.Replicas)
		}
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(home)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			return fmt.Errorf("the pod %s is ending", pod.Name)
		}
	}
	return nil
}
