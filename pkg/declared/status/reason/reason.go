// Package reason has the reasons of conditions that come from sidecars and their client, which are built without Kubernetes. Package status
// has them under the same names, and all others.
package reason

// Reasons of what a sidecar answered.
const (
	RNDCAuthenticationFailed = "RNDCAuthenticationFailed"
	UpstreamUnreachable      = "UpstreamUnreachable"
	ZoneNotFound             = "ZoneNotFound"
	BindcarBadRequest        = "BindcarBadRequest"
	BindcarAuthFailed        = "BindcarAuthFailed"
	BindcarInternalError     = "BindcarInternalError"
	BindcarNotImplemented    = "BindcarNotImplemented"
	BindcarUnreachable       = "BindcarUnreachable"
	GatewayError             = "GatewayError"
)
