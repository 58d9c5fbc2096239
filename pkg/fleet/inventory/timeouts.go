package inventory

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Timeouts are how long an object may go without progress before its status asks for a person.
type Timeouts struct {
	// Instance is for an instance or a cluster that comes no nearer to being ready.
	Instance time.Duration
	// Key is for one that waits for a Secret.
	Key time.Duration
}

// For is how long what an error says is missing may take to appear.
func (t Timeouts) For(err error) time.Duration {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		if d := answer.Status().Details; d != nil && d.Kind == "secrets" {
			return t.Key
		}
	}
	return t.Instance
}
