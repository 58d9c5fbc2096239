package render

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// now is when the samples are looked at.
var now = time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC)

// object is the SyncStatus of an object of namespace dns with the given rows. Its verdict follows from them, in so far as
// rendering needs it.
func object(kind, name, zone string, rows ...v1alpha1.ServerStatus) v1alpha1.SyncStatus {
	s := v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: strings.ToLower(kind) + "." + name},
		ObjectRef:  v1alpha1.ObjectReference{Kind: kind, Namespace: "dns", Name: name, Generation: 3},
		Zone:       zone, Servers: rows,
	}
	s.Status.Phase = v1alpha1.PhaseInSync
	s.Summary.Servers = int32(len(rows))
	for _, r := range rows {
		if r.State == v1alpha1.StateInSync {
			s.Summary.InSync++
		} else {
			s.Status.Phase = v1alpha1.PhaseOutOfSync
		}
	}
	s.Status.InSync = s.Status.Phase == v1alpha1.PhaseInSync
	return s
}

// failed makes an object one that a person has to act on.
func failed(s v1alpha1.SyncStatus, reason, message string) v1alpha1.SyncStatus {
	s.Status.Phase, s.Status.InSync, s.Status.FailureReason, s.Status.FailureMessage = v1alpha1.PhaseFailed, false, reason, message
	return s
}

// row is one server that runs; its name is that of its instance, too, and tells its role.
func row(pod string, state v1alpha1.ServerState, edit ...func(*v1alpha1.ServerStatus)) v1alpha1.ServerStatus {
	r := v1alpha1.ServerStatus{
		Instance: pod, Pod: pod, Role: "Primary", PodPhase: corev1.PodRunning, PodReady: true, State: state,
	}
	if strings.HasPrefix(pod, "secondary") {
		r.Role = "Secondary"
	}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func serial(serial, lag int64) func(*v1alpha1.ServerStatus) {
	return func(r *v1alpha1.ServerStatus) { r.Serial, r.SerialLag = &serial, &lag }
}

func behindFor(d time.Duration) func(*v1alpha1.ServerStatus) {
	return func(r *v1alpha1.ServerStatus) { r.BehindSince = new(metav1.NewMicroTime(now.Add(-d))) }
}

func says(message string) func(*v1alpha1.ServerStatus) {
	return func(r *v1alpha1.ServerStatus) { r.Message = message }
}

func observes(sets ...v1alpha1.RRset) func(*v1alpha1.ServerStatus) {
	return func(r *v1alpha1.ServerStatus) { r.Observed = sets }
}

func set(name, rrtype string, ttl int64, rdata ...string) v1alpha1.RRset {
	s := v1alpha1.RRset{Name: name, Type: rrtype, Rdata: rdata}
	if len(rdata) > 0 {
		s.TTL = &ttl
	}
	return s
}
