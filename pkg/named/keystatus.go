package named

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// RotateAt is when the ring's key is due to be replaced; nil without autoRotate.
func (r Keyring) RotateAt(settings v1beta1.RNDCKeyConfig) *metav1.Time {
	interval, err := settings.Interval()
	if !settings.AutoRotate || err != nil || len(r.Keys) == 0 {
		return nil
	}
	at := metav1.NewTime(r.Keys[0].Since.Add(interval))
	return &at
}

// Rotation is the ring's history and future as an instance's status tells it. own tells that the key is not a user's.
func (r Keyring) Rotation(settings v1beta1.RNDCKeyConfig, own bool) *v1beta1.RNDCKeyRotationStatus {
	if len(r.Keys) == 0 {
		return nil
	}
	created := metav1.NewTime(r.Keys[0].Since)
	status := &v1beta1.RNDCKeyRotationStatus{CreatedAt: &created, RotationCount: r.Switches}
	if own {
		status.RotateAt = r.RotateAt(settings)
	}
	if r.Switches > 0 {
		last := metav1.NewTime(r.SwitchedAt)
		status.LastRotatedAt = &last
	}
	return status
}
