package doctor

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// judgeAPIService judges what kube-apiserver says of the API server.
func judgeAPIService(f *Facts) Finding {
	if f.APIService.Err != nil {
		return unread(f.APIService.Request, f.APIService.Err)
	}
	s := f.APIService.Value
	switch {
	case !s.Exists:
		return failure(applyManifests, "APIService %s does not exist", s.Name)
	case s.Available.Status != metav1.ConditionTrue:
		return failure(fmt.Sprintf("kubectl -n %s logs deployment/%s", f.Namespace, apiServerName),
			"APIService %s is not available: %s: %s", s.Name, s.Available.Reason, s.Available.Message)
	}
	return ok("%s is available", s.Name)
}

// slowAnswer is how long a list may take before a person notices. One that waits for a silent server takes some seconds.
const slowAnswer = 10 * time.Second

// judgeAnswers judges a LIST of SyncStatus.
func judgeAnswers(f *Facts) Finding {
	remedy := fmt.Sprintf("kubectl -n %s logs deployment/%s", f.Namespace, apiServerName)
	err := f.OutOfSync.Err
	switch {
	case err != nil && apierrors.IsForbidden(err):
		return unread(f.OutOfSync.Request, err)
	case err != nil:
		return failure(remedy, "could not %s: %v", f.OutOfSync.Request, err)
	case f.OutOfSync.Value.Took > slowAnswer:
		return warning("docs/scaling.md has what an answer costs; "+remedy, "a LIST takes %s", f.OutOfSync.Value.Took.Round(time.Millisecond))
	}
	return ok("a LIST takes %s", f.OutOfSync.Value.Took.Round(time.Millisecond))
}
