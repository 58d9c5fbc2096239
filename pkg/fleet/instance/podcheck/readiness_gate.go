package podcheck

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/lru"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// Pace of questions to a pod that does not serve every zone yet: slower the longer no further zone has come.
const (
	minLoadingInterval = 500 * time.Millisecond
	maxLoadingInterval = 5 * time.Second
)

// stuckAfter is how long a pod that serves some zones waits for more before it is let into service without the rest: one
// zone that does not load must not keep the others off the network.
const stuckAfter = 2 * time.Minute

// maxGates bounds the memory of pods that are gone.
const maxGates = 4096

// readinessGates remembers what each pod was seen to serve, by the pod's UID.
type readinessGates struct{ pods *lru.Cache }

func newReadinessGates() readinessGates { return readinessGates{lru.New(maxGates)} }

// readinessGate is the state of one pod's readiness gate since its containers last started.
type readinessGate struct {
	mu       sync.Mutex
	restarts int32
	open     bool
	// served has the zones that the pod was seen to serve.
	served sync.Map
	// explanations are why zones of a user's configuration are not loaded, by name: the latest, whatever a sidecar lists.
	explanations *lru.Cache
	// most is the greatest number of zones that it served so far, since is when that was reached.
	most  int
	since time.Time
	// failing is since when the sidecar fails, zero while it answers; retry is the last pause between two questions to it.
	failing time.Time
	retry   time.Duration
}

// gateOf is the gate of a pod. A restarted container begins with a closed gate, because its zones have to load again; a pod that is seen
// for the first time keeps the gate it has.
func (g readinessGates) gateOf(pod *corev1.Pod) *readinessGate {
	var restarts int32
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
	}
	known, ok := g.pods.Get(pod.UID)
	if gate, _ := known.(*readinessGate); ok && gate.restarts == restarts {
		return gate
	}
	gate := &readinessGate{restarts: restarts, open: !ok && status.PodHas(pod, v1beta1.ZonesLoadedGate), explanations: lru.New(maxExplanations)}
	g.pods.Add(pod.UID, gate)
	return gate
}

// update decides whether the pod may be in service. A gate opens when every required zone is served. It stays open when
// zones are added, which are on their way and take nothing from the others, and closes again only when a pod that
// served zones serves none of them any more: it came back empty.
func (g *readinessGate) update(required, served int, now time.Time) (open bool, verdict status.Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	emptied := g.most > 0 && served == 0
	if served > g.most || g.since.IsZero() || emptied {
		g.most, g.since = served, now
	}
	loading := status.Loading(served, required)
	switch {
	case served >= required:
		g.open = true
		return true, status.True(status.ReasonReady, "")
	case g.open && emptied:
		g.open = false
	case !g.open && served > 0 && now.Sub(g.since) >= stuckAfter:
		g.open = true
	}
	return g.open, loading
}

// isStuck reports whether the pod has had time to get a zone and got none.
func (g *readinessGate) isStuck(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Sub(g.since) >= errorTolerance
}

// loadingInterval is how soon to check a pod again that lacks some of so many zones. While it is in service nobody waits for that, and
// new zones request a check themselves.
func (g *readinessGate) loadingInterval(zones int, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	look := inventory.DebounceFor(zones)
	pace := min(max(minLoadingInterval, now.Sub(g.since)/8, look), maxLoadingInterval)
	if g.open {
		return max(pace, look)
	}
	return pace
}

// gateConfiguration is a pod's status with the gate's condition and nothing else.
func gateConfiguration(pod *corev1.Pod, value corev1.ConditionStatus, message string, now time.Time) *corev1ac.PodApplyConfiguration {
	reason := "ZonesLoaded"
	if value != corev1.ConditionTrue {
		reason = "ZonesLoading"
	}
	condition := corev1ac.PodCondition().WithType(v1beta1.ZonesLoadedGate).WithStatus(value).WithReason(reason).
		WithLastTransitionTime(metav1.NewTime(now.Truncate(time.Second)))
	if message != "" {
		condition.WithMessage(message)
	}
	return corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithStatus(corev1ac.PodStatus().WithConditions(condition))
}
