package sidecar

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// reconnectMargin is how long before the end of its certificate a caller is asked to connect again, with a newer one.
const reconnectMargin = time.Hour

// requireCaller serves callers with one of the identities, for as long as their certificate is valid. The certificate has been
// verified during the handshake.
func requireCaller(next http.Handler, identities ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, expires := callerOf(r)
		left := time.Until(expires)
		if left < reconnectMargin {
			w.Header().Set("Connection", "close")
		}
		switch {
		case left <= 0:
			httperror.WriteError(w, r, httperror.New(http.StatusUnauthorized, "authentication required",
				"connect with a valid client certificate of Lockstep's authority"))
			return
		case !slices.Contains(identities, caller):
			httperror.WriteError(w, r, httperror.New(http.StatusForbidden, "forbidden", "the certificate of "+caller+" does not permit this request"))
			return
		}
		ctx, cancel := context.WithDeadline(r.Context(), expires)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// callerOf reads the identity in the client's certificate, and when the certificate ends.
func callerOf(r *http.Request) (identity string, expires time.Time) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return "", time.Time{}
	}
	certificate := r.TLS.VerifiedChains[0][0]
	if len(certificate.URIs) == 1 {
		identity = certificate.URIs[0].String()
	}
	return identity, certificate.NotAfter
}
