package integration

import (
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// An HTTPRoute becomes a name when a Gateway has accepted it, and goes with its owner. The test does what the Gateway's controller does.
func externalDNSRoutes(e externalDNS) {
	definitions := kube.Definitions(e, "gateway-api")
	var files []string
	for _, kind := range []string{"gateways", "httproutes"} {
		files = append(files, "-f", filepath.Join(definitions, "gateway.networking.k8s.io_"+kind+".yaml"))
	}
	kube.Kubectl(e, "", append([]string{"apply", "--server-side"}, files...)...)
	defer kube.Kubectl(e, "", append([]string{"delete", "--ignore-not-found"}, files...)...)
	kube.Kubectl(e, "", append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, files...)...)
	kubectl := func(manifest string, args ...string) {
		e.Helper()
		kube.Kubectl(e, manifest, append([]string{"--namespace", e.namespace}, args...)...)
	}
	const name, other = "route.externaldns.example", "other-route.externaldns.example"
	kubectl(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: none
  listeners: [{name: http, protocol: HTTP, port: 80, hostname: "*.externaldns.example"}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  hostnames: [`+name+`, www.elsewhere.example]
`, "apply", "-f", "-")
	kubectl("", "patch", "gateway/edge", "--subresource=status", "--type=merge", "-p", `{"status":{"addresses":[{"type":"IPAddress","value":"192.0.2.1"},{"type":"IPAddress","value":"2001:db8::1"}]}}`)
	e.startProvider()
	e.startExternalDNS(false, "--policy=sync", "--namespace="+e.namespace, "--source=gateway-httproute")
	e.waitNoChanges() // No Gateway has accepted the route.
	e.waitServed(name, "A")
	kubectl("", "patch", "httproute/web", "--subresource=status", "--type=merge", "-p", `{"status":{"parents":[{"parentRef":{"name":"edge"},
		"controllerName":"gateway.example/controller","conditions":[{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}}`)
	e.waitServed(name, "A", "192.0.2.1")
	e.waitServed(name, "AAAA", "2001:db8::1")

	kubectl("", "patch", "httproute/web", "--type=merge", "-p", `{"spec":{"hostnames":["`+other+`"]}}`)
	e.waitServed(other, "A", "192.0.2.1")
	e.waitServed(name, "A")
	declared := &v1alpha1.DNSEndpoint{}
	if err := e.client.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: "external-dns.httproute.web"}, declared); err != nil {
		e.Fatal(err)
	}
	if owners := declared.OwnerReferences; len(owners) != 1 || owners[0].APIVersion != "gateway.networking.k8s.io/v1" || owners[0].Kind != "HTTPRoute" {
		e.Errorf("the owners are %+v", owners)
	}
	kubectl("", "delete", "httproute/web")
	e.waitServed(other, "A")
}
