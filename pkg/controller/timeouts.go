package controller

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Timeouts are how long the phases of an object may take before a person is called.
type Timeouts struct {
	// Instance is for an instance or a cluster that comes no nearer to being ready.
	Instance time.Duration
	// Key is for one that waits for a Secret.
	Key time.Duration
	// Zone is for a zone that an instance of its does not serve.
	Zone time.Duration
}

// of is the time that what is missing, by the error that says so, may take to appear.
func (t Timeouts) of(err error) time.Duration {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		if d := answer.Status().Details; d != nil && d.Kind == "secrets" {
			return t.Key
		}
	}
	return t.Instance
}
