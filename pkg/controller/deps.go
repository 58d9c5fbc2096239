package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/observe"
)

// Deps are what the reconcilers share.
type Deps struct {
	// Namespace that Lockstep itself runs in; ControllerAccount and APIServerAccount are ServiceAccounts there.
	Namespace         string
	ControllerAccount string
	APIServerAccount  string
	// Bind9Image and BindcarImage run in the pods of an instance that names no image of its own.
	Bind9Image, BindcarImage string
	// Timeouts of the phases of instances and clusters.
	Timeouts Timeouts
	// Observer asks servers what they serve.
	Observer *observe.Observer
	// Bindcar speaks to the sidecars.
	Bindcar *bindcar.Client
	// authority issues the sidecars' certificates, and says which ones to trust.
	authority *authority
	// keys are the TSIG keys to sign with.
	keys *keyring
	// Provisioned wakes the reconciler of an instance after a zone was added to its pods or taken off them. Its events
	// carry a Bind9Instance with nothing but a namespace and a name.
	Provisioned chan event.GenericEvent
}
