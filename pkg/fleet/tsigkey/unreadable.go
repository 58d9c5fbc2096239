package tsigkey

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Unreadable puts an error about reading a Secret in words for a status. They are the same for a Secret that does not exist and one that
// may not be read: whoever reads the status may have no right to know which. Such an error is an *UnreadableError; any other stays as it
// is.
func Unreadable(name string, err error) error {
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	return &UnreadableError{name: name, err: err}
}

// UnreadableError is a Secret that does not exist or may not be read. It wraps the error of kube-apiserver.
type UnreadableError struct {
	name string
	err  error
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("Secret %s does not exist or may not be read", e.name)
}

// Unwrap is the error of kube-apiserver.
func (e *UnreadableError) Unwrap() error { return e.err }
