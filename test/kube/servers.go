package kube

import (
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// Servers returns the addresses of named in the running pods of a namespace, by pod name. It is an error if there are none.
func Servers(ctx context.Context, c client.Client, namespace string) (map[string]string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		return nil, err
	}
	servers := map[string]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			servers[pod.Name] = net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(serving.Port))
		}
	}
	if len(servers) == 0 {
		return nil, errors.New("no pod has an address")
	}
	return servers, nil
}
