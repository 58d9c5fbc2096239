package status

import (
	"fmt"
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
	// Problem is what the pod's sidecar answered, or what its zones lack; True when there is no such problem. The
	// message goes on after the pod's name.
	Problem Verdict
}

func (f PodFacts) verdict() Verdict {
	say := func(make func(string, string) Verdict, reason, message string) Verdict {
		return make(reason, "Pod "+f.Name+" "+message)
	}
	if f.Pod == nil {
		return say(No, PodsPending, "does not exist yet")
	}
	if crash := crashing(f.Pod); crash != "" {
		return say(No, PodsCrashing, "is crashing: "+crash)
	}
	ready := PodReady(f.Pod)
	switch loading := f.Problem.Reason == ReasonProgressing || f.Problem.Reason == UpstreamUnreachable; {
	case !f.Problem.Holds() && (!ready || !loading):
		return say(No, f.Problem.Reason, f.Problem.Message)
	case sidecarEnded(f.Pod):
		return say(No, BindcarUnreachable, "cannot connect to Bindcar API")
	case f.Pod.Status.Phase != corev1.PodRunning:
		return say(No, PodsPending, "is pending"+because(pendingReason(f.Pod)))
	case !ready:
		return say(No, ReasonProgressing, "is starting")
	}
	return say(Yes, ReasonReady, "is ready")
}

// PodReady tells whether the pod's Ready condition holds, its readiness gates included.
func PodReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// crashing names the container that fails over and over, and how.
func crashing(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
				return fmt.Sprintf("container %s ended %d times%s", c.Name, c.RestartCount, because(lastWords(c)))
			}
		}
	}
	return ""
}

// sidecarEnded tells whether the sidecar has ended and does not run again yet while named does.
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

func lastWords(c corev1.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	if t == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s (exit code %d) %s", t.Reason, t.ExitCode, complaints(t.Message)))
}

// complaintLength bounds what a condition repeats of a log: the last of it, which tells why the container ended.
const complaintLength = 600

// complaints are the lines of a log that tell of errors, the last line when none does.
func complaints(log string) string {
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
	said := strings.Join(errs, "; ")
	if len(said) > complaintLength {
		said = "…" + strings.ToValidUTF8(said[len(said)-complaintLength:], "")
	}
	return said
}

// pendingReason is the scheduler's or the kubelet's explanation of a pod that does not run.
func pendingReason(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return fmt.Sprintf("container %s: %s %s", c.Name, w.Reason, w.Message)
			}
		}
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSpace(reason)
}
