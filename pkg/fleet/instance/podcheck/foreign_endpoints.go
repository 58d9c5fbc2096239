package podcheck

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// foreignEndpoints are what an instance's Service sends queries to besides the pods of the instance: pods in service that have all of the
// labels that it selects by, and EndpointSlices that somebody has made for it. The cache has no EndpointSlices of Kubernetes' own
// controller: these follow from the labels.
func (c *Checker) foreignEndpoints(ctx context.Context, instance *v1beta1.Bind9Instance, selected map[string]*corev1.Pod) ([]string, error) {
	var foreign []string
	own := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(selected)) {
		pod := selected[name]
		set := metav1.GetControllerOf(pod)
		switch {
		case set != nil && set.Kind == "StatefulSet" && set.Name == instance.Name:
			for _, ip := range pod.Status.PodIPs {
				own[ip.IP] = true
			}
		case status.PodReady(pod):
			foreign = append(foreign, "Pod "+name)
		}
	}
	var byHand discoveryv1.EndpointSliceList
	err := c.client.List(ctx, &byHand, client.InNamespace(instance.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: instance.Name})
	if err != nil {
		return nil, fmt.Errorf("listing EndpointSlices of Service %s: %w", instance.Name, err)
	}
	for n := range byHand.Items {
		if slice := &byHand.Items[n]; sendsElsewhere(slice, own) {
			foreign = append(foreign, "EndpointSlice "+slice.Name)
		}
	}
	return foreign, nil
}

// sendsElsewhere reports whether an EndpointSlice has an endpoint in service with another address than these.
func sendsElsewhere(slice *discoveryv1.EndpointSlice, own map[string]bool) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		return ptr.Deref(e.Conditions.Ready, true) && slices.ContainsFunc(e.Addresses, func(address string) bool { return !own[address] })
	})
}
