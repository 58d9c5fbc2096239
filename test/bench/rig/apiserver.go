package rig

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// apiServerPort is our API server's.
const apiServerPort = 8443

// apiServerLabels select the pods of our API server.
var apiServerLabels = client.MatchingLabels{"app.kubernetes.io/component": "apiserver"}

// RestartAPIServer replaces our API server's pods and waits until the new ones answer: their memory holds then what they
// need, and nothing of before.
func (r *Rig) RestartAPIServer(ctx context.Context) error {
	old := map[string]bool{}
	pods, err := r.apiServerPods(ctx)
	if err != nil {
		return err
	}
	for _, p := range pods {
		old[p.Name] = true
	}
	if err := r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(system), apiServerLabels); err != nil {
		return err
	}
	return PollUntil(ctx, 3*time.Minute, 250*time.Millisecond, func() error {
		pods, err := r.apiServerPods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if old[p.Name] || !status.PodReady(&p) {
				return fmt.Errorf("pod %s is not a new one that is ready", p.Name)
			}
		}
		if len(pods) != len(old) {
			return fmt.Errorf("%d of %d pods of our API server have started", len(pods), len(old))
		}
		_, err = r.MeasureHop(ctx) // has it look at nothing
		return err
	})
}

func (r *Rig) apiServerPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(system), apiServerLabels)
	return pods.Items, err
}

// APIServerMemory returns the memory of our API server's process, in bytes; of several replicas that of the largest.
func (r *Rig) APIServerMemory(ctx context.Context) (float64, error) {
	pods, err := r.apiServerPods(ctx)
	if err != nil {
		return 0, err
	}
	var most float64
	for _, p := range pods {
		resident, err := r.memoryOfReplica(ctx, p.Status.PodIP)
		if err != nil {
			return 0, err
		}
		most = max(most, resident)
	}
	if most == 0 {
		return 0, errors.New("our API server does not report its memory")
	}
	return most, nil
}

// SettleTime is how long a process is left alone before its memory is read: at rest it returns what it does not need.
const SettleTime = 15 * time.Second

// MemoryAfterRestart starts our API server anew, has it fetch a zone from all its servers by reading a path, leaves it alone for a while,
// and returns its memory in bytes.
func (r *Rig) MemoryAfterRestart(ctx context.Context, path string, settle time.Duration) (float64, error) {
	if err := r.RestartAPIServer(ctx); err != nil {
		return 0, err
	}
	if _, _, err := r.ReadPath(ctx, path); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	return r.APIServerMemory(ctx)
}

// memoryOfReplica reads the memory of one replica.
func (r *Rig) memoryOfReplica(ctx context.Context, address string) (float64, error) {
	page, err := r.readReplica(ctx, address, "/metrics")
	return sumSamples(parseMetrics(page), "process_resident_memory_bytes", nil), err
}

// readReplica reads a path of one replica once.
func (r *Rig) readReplica(ctx context.Context, address, path string) ([]byte, error) {
	read, err := r.ReplicaReader(ctx)
	if err != nil {
		return nil, err
	}
	return read(ctx, address, path)
}

// ReplicaReader returns a function that reads a path of the replica at an address, past kube-apiserver, as the user of the kubeconfig.
func (r *Rig) ReplicaReader(ctx context.Context) (func(ctx context.Context, address, path string) ([]byte, error), error) {
	direct, err := r.directConfig(ctx)
	if err != nil {
		return nil, err
	}
	c, err := rest.HTTPClientFor(direct)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, address, path string) ([]byte, error) {
		return fetchPageWith(ctx, c, fmt.Sprintf("https://%s:%d%s", address, apiServerPort, path))
	}, nil
}

// ScaleAPIServer has so many replicas of our API server, and no others, run, and returns their addresses.
func (r *Rig) ScaleAPIServer(ctx context.Context, replicas int) (addresses []string, err error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "lockstep-apiserver"}}
	scale := fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)
	if err := r.Client.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(scale))); err != nil {
		return nil, err
	}
	err = PollUntil(ctx, 3*time.Minute, 250*time.Millisecond, func() error {
		pods, err := r.apiServerPods(ctx)
		if err != nil {
			return err
		}
		addresses = nil
		for _, p := range pods {
			if !status.PodReady(&p) || p.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s is not one that is ready and stays", p.Name)
			}
			addresses = append(addresses, p.Status.PodIP)
		}
		if len(pods) != replicas {
			return fmt.Errorf("our API server has %d pods, want %d", len(pods), replicas)
		}
		return nil
	})
	return addresses, err
}

// directConfig returns a configuration for our API server's own port: its certificate is checked as kube-apiserver does.
func (r *Rig) directConfig(ctx context.Context) (*rest.Config, error) {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "v1alpha1.sync.bindy.firestoned.io"}, service); err != nil {
		return nil, err
	}
	bundle, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	ca, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return nil, fmt.Errorf("caBundle of APIService %s: %w", service.GetName(), err)
	}
	config := rest.CopyConfig(r.config)
	config.CAFile, config.CAData = "", ca
	config.ServerName = "lockstep-apiserver." + system + ".svc"
	return config, nil
}

// CountZoneBytes returns the length of a zone's data on all servers, as it is in transfers.
func (r *Rig) CountZoneBytes(ctx context.Context, apex string) (int, error) {
	total := 0
	for _, server := range r.Servers {
		zone, err := wire.Transfer(ctx, server, apex, nil, r.Transfer)
		if err != nil {
			return 0, err
		}
		for _, rr := range zone.Records {
			total += len(rr.Name) + len(rr.Rdata)
		}
	}
	return total, nil
}
