// Package certs gives Lockstep's two TLS servers, the aggregated API server and the admission webhook, certificates that
// kube-apiserver trusts, without cert-manager and without ever switching verification off.
//
// One certificate authority lives in one Secret. Three parties use it:
//
//   - Keeper, run by the controller's leader, makes the authority, rolls it over before it expires, heals the Secret when
//     somebody deletes it, and keeps the caBundle of the APIService and of the webhook configurations current.
//   - Serving, run by each server, mints its own leaf from the Secret. Leaves live in memory only and are renewed when two
//     thirds of their life are over.
//   - kube-apiserver verifies the leaf with the caBundle.
//
// The sidecars in BIND pods may not read the Secret: the controller issues a leaf to each instance (State.Issue), and
// verifies it (State.Pool).
//
// A roll-over leaves no gap: the new authority is trusted everywhere (old and new are published together) before the
// first leaf is signed with it, and the old one stays trusted until every leaf that it signed has expired. The decisions
// are in Policy.Advance, which takes values and gives values; clocks and clients come in from outside.
//
//	serving := certs.NewServing(client, certs.SecretKey("lockstep-system"), certs.ServiceNames("lockstep-webhook", "lockstep-system")...)
//	go serving.Run(ctx)                                       // waits for the Secret, then follows it
//	tlsConfig.GetCertificate = serving.GetCertificate         // an http.Server, or controller-runtime's webhook server
//	secureServing.ServerCert.GeneratedCert = serving          // k8s.io/apiserver
//	config.AddReadyzChecks(serving)                           // not ready before there is a certificate
package certs
