package tsigkey

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Unreadable returns an error about reading a Secret in words for a status. They are the same for a Secret that does not exist and one
// that may not be read: whoever reads the status may have no right to know which. The error still wraps the one of kube-apiserver.
func Unreadable(name string, err error) error {
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	return &unreadableError{name: name, err: err}
}

type unreadableError struct {
	name string
	err  error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("Secret %s does not exist or may not be read", e.name)
}

func (e *unreadableError) Unwrap() error { return e.err }
