package apiserver

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// refuseUnsupported answers with 405 and a reason what our group does not support: requests to write, and to read the objects
// that SyncStatuses are about.
func refuseUnsupported(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != syncv1.GroupName {
			next.ServeHTTP(w, r)
			return
		}
		kind, name, isParent := subjectOf(info)
		message, allowed := "", "GET"
		switch reads := info.Verb == "get" || info.Verb == "list" || info.Verb == "watch"; {
		case !reads:
			message = readOnlyMessage(kind, name)
		case isParent && info.Subresource == "":
			message, allowed = subresourceMessage(kind), ""
		default:
			next.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewMethodNotSupported(syncv1.Resource(info.Resource), info.Verb)
		err.ErrStatus.Message = message
		err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed
		w.Header().Set("Allow", allowed)
		responsewriters.ErrorNegotiated(err, codecs, syncv1.SchemeGroupVersion, w, r)
	})
}

// subjectOf finds what a request is about: the kind and name of an object, as far as the request names them. isParent means that the
// resource is the object's own.
func subjectOf(info *request.RequestInfo) (kind subject.Kind, name string, isParent bool) {
	for _, k := range subject.Kinds() {
		if k.Resource == info.Resource {
			return k, info.Name, true
		}
	}
	kind, name, _ = subject.ParseName(info.Name)
	return kind, name, false
}

func readOnlyMessage(kind subject.Kind, name string) string {
	message := "SyncStatus is read-only: it is computed from the DNS servers' answers and never stored. "
	if name == "" {
		return message + fmt.Sprintf("Change the object that it is about, in group %s or %s", v1beta1.GroupName, v1alpha1.GroupVersion.Group)
	}
	return message + fmt.Sprintf("Change %s %s, in group %s", kind.Kind, name, kind.GroupVersion().Group)
}

func subresourceMessage(kind subject.Kind) string {
	return fmt.Sprintf("group %s has of %s only the subresource syncstatus of one object by its name; the objects themselves are in group %s",
		syncv1.GroupName, kind.Resource, kind.GroupVersion().Group)
}
