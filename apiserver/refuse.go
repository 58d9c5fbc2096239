package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

const readOnly = "SyncStatus is read-only: it is computed from the DNS servers' answers and never stored. " +
	"Change the object that it is about, in group bindy.firestoned.io"

// refuseWrites answers requests to write to our group with 405 and the reason.
func refuseWrites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName || reads(info.Verb) {
			next.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewMethodNotSupported(v1alpha1.Resource(info.Resource), info.Verb)
		err.ErrStatus.Message = readOnly
		err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed
		w.Header().Set("Allow", "GET, HEAD")
		responsewriters.ErrorNegotiated(err, codecs, v1alpha1.SchemeGroupVersion, w, r)
	})
}

func reads(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }
