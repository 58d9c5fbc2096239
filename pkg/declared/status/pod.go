package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Containers of a pod.
const (
	containerNamed   = "named"
	containerSidecar = "bindcar"
)

// PodFacts is what is known about one expected pod.
type PodFacts struct {
	Name string
	// Pod is nil while it does not exist.
	Pod *corev1.Pod
	// Serving says whether the pod serves its zones: what its sidecar answered, or what they lack. Its message
	// follows the pod's name.
	Serving Verdict
	// Missing says which Secret or ConfigMap the pod waits for, which the kubelet says in Events only; empty if there is none.
	Missing string
	// ImageAdvice is what to do if the image of named cannot be pulled; empty if nobody knows more than the kubelet.
	ImageAdvice string
	// Unloaded are the zones of a user's configuration that the pod does not serve, with the reasons.
	Unloaded []string
}

func (f PodFacts) verdict() Verdict {
	verdict := func(state func(string, string) Verdict, reason, message string) Verdict {
		return state(reason, "Pod "+f.Name+" "+message)
	}
	if f.Pod == nil {
		return verdict(False, PodsPending, "does not exist yet")
	}
	if !f.Pod.DeletionTimestamp.IsZero() {
		return verdict(False, PodsPending, "is being deleted")
	}
	if crash := crashMessage(f.Pod); crash != "" {
		return verdict(False, PodsCrashing, "is crashing: "+crash)
	}
	ready := PodReady(f.Pod)
	switch loading := f.Serving.Reason == ReasonProgressing || f.Serving.Reason == UpstreamUnreachable; {
	case !f.Serving.Holds() && (!ready || !loading):
		return verdict(False, f.Serving.Reason, f.Serving.Message)
	case sidecarEnded(f.Pod):
		return verdict(False, BindcarUnreachable, "cannot connect to Bindcar API")
	case f.Pod.Status.Phase != corev1.PodRunning || !ready && f.pendingReason() != "":
		return verdict(False, PodsPending, "is pending"+withReason(f.pendingReason()))
	case !ready:
		return verdict(False, ReasonProgressing, "is starting"+withReason(unreadyReason(f.Pod)))
	}
	return verdict(True, ReasonReady, "is ready")
}

// Loading is about a pod that serves some of the zones that it has to.
func Loading(served, required int) Verdict {
	return False(ReasonProgressing, fmt.Sprintf("serves %d of %d zones", served, required))
}

// LoadingBecause is about a pod that lacks zones, with what kept one of them away.
func LoadingBecause(loading, cause Verdict) Verdict {
	return False(cause.Reason, loading.Message+": "+cause.Message)
}

// NoPrimaryReady is the cause of a zone that can be transferred from nowhere.
func NoPrimaryReady(zone string) Verdict {
	return False(UpstreamUnreachable, "no primary of "+zone+" is ready")
}

// NotAdded is the cause of a zone that a sidecar refused to add, with its answer.
func NotAdded(zone, reason, answer string) Verdict { return False(reason, zone+": "+answer) }

// NotInNamed is the cause of a zone that nobody has added to a server.
func NotInNamed(zone string) Verdict { return False(ZoneNotFound, "named does not have "+zone) }

// MissingVolume says which object does not exist that a volume of a pod is made from.
func MissingVolume(kind, name, volume string) string {
	return fmt.Sprintf("%s %s, which its volume %s needs, does not exist", kind, name, volume)
}

// Failure is the problem of a pod as that of its instance.
func (f PodFacts) Failure() Verdict {
	return False(f.Serving.Reason, "Pod "+f.Name+" "+f.Serving.Message)
}

// cause is what keeps the pod from running, in the words of the scheduler or of the kubelet.
func (f PodFacts) cause() string {
	if f.verdict().Reason != PodsPending || f.Pod == nil || !f.Pod.DeletionTimestamp.IsZero() {
		return ""
	}
	return f.pendingReason()
}

// unreadyReason is what the kubelet says of containers that run and are not ready; empty before it has said so.
func unreadyReason(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.ContainersReady && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// PodReady needs the pod's Ready condition, which includes its readiness gates, and the pod not to be in deletion.
func PodReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && PodHas(pod, corev1.PodReady)
}

// PodHas reports whether a condition of a pod is true.
func PodHas(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// crashMessage says which container is in a crash loop, and why.
func crashMessage(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
				return fmt.Sprintf("container %s exited %d times%s", c.Name, c.RestartCount, withReason(lastTermination(c)))
			}
		}
	}
	return ""
}

// sidecarEnded reports whether the sidecar has exited and has not been restarted yet while named runs.
func sidecarEnded(pod *corev1.Pod) bool {
	running, ended := false, false
	for _, c := range pod.Status.ContainerStatuses {
		switch c.Name {
		case containerNamed:
			running = c.State.Running != nil
		case containerSidecar:
			ended = c.State.Running == nil && (c.State.Terminated != nil || c.LastTerminationState.Terminated != nil)
		}
	}
	return running && ended
}

func lastTermination(c corev1.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	if t == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s (exit code %d) %s", t.Reason, t.ExitCode, errorLines(t.Message)))
}

// maxLogLength bounds what a condition quotes of a log: the end, which has the reason why the container exited.
const maxLogLength = 600

// errorLines keeps the lines of a log that report errors, or else the last line.
func errorLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	var errs []string
	for _, line := range lines {
		for _, severity := range []string{" error: ", " critical: "} {
			if _, text, ok := strings.Cut(line, severity); ok {
				errs = append(errs, text)
			}
		}
	}
	if len(errs) == 0 {
		return lines[len(lines)-1]
	}
	text := strings.Join(errs, "; ")
	if len(text) > maxLogLength {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxLogLength:], "")
	}
	return text
}

// pendingReason is what the pod waits for, else the scheduler's or the kubelet's explanation of a pod that does not run.
func (f PodFacts) pendingReason() string {
	if f.Missing != "" {
		return f.Missing
	}
	for _, c := range f.Pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, c := range slices.Concat(f.Pod.Status.InitContainerStatuses, f.Pod.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w == nil || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		reason := fmt.Sprintf("container %s: %s %s", c.Name, w.Reason, w.Message)
		if f.ImageAdvice != "" && c.Name == containerNamed && isImageProblem(w.Reason) {
			return f.ImageAdvice + "; " + reason
		}
		return reason
	}
	return ""
}

// isImageProblem knows the kubelet's names for a container that waits because there is no image.
func isImageProblem(reason string) bool {
	return slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}, reason)
}

func withReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSpace(reason)
}
