package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/load"
)

// startLoad has resolvers ask for an A record that is served by all servers, "IP:port" by name, until the returned function is called, which
// ends the load.
func (f *fixture) startLoad(servers map[string]string, name, want string) (end func() load.Result) {
	return load.Start(f.Context(), servers, load.Question{Name: name, Want: want}).End
}

// report prints the numbers of a load, and fails the test when a server answered wrong, or a query was lost.
func (f *fixture) report(result load.Result, what string) {
	f.Helper()
	f.Logf("%s: %s", what, result)
	if err := result.Err(); err != nil {
		f.Errorf("%s: %v", what, err)
	}
}

// askUntilAnswered asks a server for an A record until it answers, whatever it says.
func (f *fixture) askUntilAnswered(address, name string) (answer string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(context.Context) (err error) {
		answer, err = load.Ask(address, name)
		return err
	})
	return answer
}

// followReplacements follows the pods of instances of one pod each. The returned function ends that. It fails the test if a pod was sent to
// its end while another instance, whose pod had been sent to its end before, had no pod that was ready yet: then two servers were away at once.
func (f *fixture) followReplacements(instances ...string) (end func()) {
	f.Helper()
	var mu sync.Mutex
	var failures []string
	ending, away := map[types.UID]bool{}, map[string]bool{}
	ctx, cancel := context.WithCancel(f.Context())
	followObjects(ctx, f.T, f.namespace, &corev1.Pod{}, func(pod *corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		instance := strings.TrimSuffix(pod.Name, "-0")
		if !slices.Contains(instances, instance) {
			return
		}
		switch {
		case pod.DeletionTimestamp == nil && status.PodReady(pod):
			delete(away, instance)
		case pod.DeletionTimestamp != nil && !ending[pod.UID]:
			ending[pod.UID], away[instance] = true, true
			if len(away) > 1 {
				failures = append(failures, fmt.Sprintf("at %s %v", pod.DeletionTimestamp.Format(time.TimeOnly), slices.Sorted(maps.Keys(away))))
			}
		}
	})
	return func() {
		f.Helper()
		cancel()
		mu.Lock()
		defer mu.Unlock()
		f.Logf("%d pods were replaced", len(ending))
		if len(failures) > 0 {
			f.Errorf("away at the same time: %q", failures)
		}
	}
}

// services are where the Services of instances serve DNS, by instance.
func (f *fixture) services(instances ...string) map[string]string {
	f.Helper()
	addresses := map[string]string{}
	for _, name := range instances {
		var service corev1.Service
		if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, &service); err != nil {
			f.Fatal(err)
		}
		addresses[name] = service.Spec.ClusterIP + ":53"
	}
	return addresses
}
