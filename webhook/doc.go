// Package webhook is the admission component: the server that kube-apiserver calls, once, before it stores an object. Package mark
// puts on records and DNSEndpoints what has to be remembered of data that is about to enter DNS; package review refuses
// objects that could never become DNS, in the terminal of the person who applies them.
//
// The configurations in manifests/base/admission.yaml keep status writes, other programs' finalizers and what the
// controller itself writes away from here, so an outage can delay nothing but a change of specification.
//
// By default everybody who reaches the port is answered, and one address gets at most half of what all share (TestAttack10HalfSentReviews). It costs
// nothing and needs nothing to be configured. The component authenticated-webhook has kube-apiserver alone answered, for clusters whose
// users do not trust each other; its price is one more APIService (docs/decisions/2026-11-22-authenticated-webhook.md).
package webhook
