package plugin

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// explainError says what an error of the API means to the one who asked. t is what was asked for, without a name for a list.
func (c *statusClient) explainError(err error, t target) error {
	api := v1alpha1.SchemeGroupVersion
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// No API gave this answer, but kube-apiserver, which knows of none at that path.
		return fmt.Errorf("this cluster does not serve SyncStatus (%s): is Lockstep installed? See kubectl get apiservice %s.%s",
			api, api.Version, api.Group)
	case apierrors.IsNotFound(err) && t.name != "":
		return fmt.Errorf("there is no %s %s in namespace %s", t.kind.Kind, t.name, c.namespace)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("the API server of Lockstep does not answer (%w): see kubectl get apiservice %s.%s", err, api.Version, api.Group)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: the role view would do", err)
	}
	return err
}
