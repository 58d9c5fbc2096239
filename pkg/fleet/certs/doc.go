// Package certs is Lockstep's certificate authority. It gives the aggregated API server and the admission webhook
// certificates that kube-apiserver trusts, and controller, API server and sidecars those by which they recognize each other
// (mutual TLS), without cert-manager and without ever switching verification off.
//
// One authority lives in one Secret, which nobody but the fleet manager may read:
//
//   - Keeper, run by the fleet manager's leader, makes the authority, rolls it over before it expires, heals the Secret when
//     somebody deletes it, keeps the caBundle of the APIService and of the webhook configurations current, and issues each
//     recipient a certificate in a Secret of its own. Its own client certificate stays in memory.
//   - Follower, run by each component, follows that Secret.
//   - The instance reconciler, in the same process, issues a certificate to the sidecars of each instance (State.Issue).
//   - kube-apiserver verifies the two servers with the caBundle; components and sidecars verify each other with the bundle
//     that comes with each certificate.
//
// A certificate is for a server, by DNS names, or for a client, by an identity; never for both (Subject).
//
// A roll-over leaves no gap: the new authority is trusted everywhere (old and new are published together) before the
// first certificate is signed with it, and the old one stays trusted until every certificate that it signed has expired. The
// decisions are in Policy.Advance, which takes values and gives values; clocks and clients come in from outside.
//
//	follower := certs.NewFollower(client, types.NamespacedName{Namespace: "lockstep-system", Name: "lockstep-webhook-tls"})
//	go follower.Run(ctx)                                      // waits for the Secret, then follows it
//	tlsConfig.GetCertificate = follower.GetCertificate        // an http.Server, or controller-runtime's webhook server
//	secureServing.ServerCert.GeneratedCert = follower         // k8s.io/apiserver
//	config.AddReadyzChecks(follower)                          // not ready before there is a certificate
package certs
