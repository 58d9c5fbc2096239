// Package webhook is the admission component: the server that kube-apiserver calls, once, before it stores an object. Package mark
// puts on records and DNSEndpoints what has to be remembered of data that is about to enter DNS; package review refuses
// objects that could never become DNS, in the terminal of the person who applies them.
//
// The configurations in manifests/base/admission.yaml keep status writes, other programs' finalizers and what the
// controller itself writes away from here, so an outage can delay nothing but a change of specification.
package webhook
