package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// The steps of docs/guides/from-external-dns-rfc2136.md: a zone that external-dns keeps on a BIND by dynamic updates is imported without what
// external-dns has there, a second external-dns publishes that here, both servers answer the same, and the names stay when the first is gone.
func TestMigrationFromExternalDNS(t *testing.T) {
	kube.Isolated(t)
	old := namedtest.Start(t, namedtest.Options{Update: namedtest.NewKey("external-dns"), Transfer: namedtest.NewKey("import"), Zones: []namedtest.Zone{{
		Name: "moved.example.", Records: "static A 192.0.2.5\nstatic TXT \"mine\"\na-dash A 192.0.2.6\n",
		Extra: `allow-transfer { key "external-dns"; key "import"; };`,
	}}})
	f := &pluginTest{&fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it"), zone: "moved.example", size: 2}, pluginFolder(t)}
	f.create(f.cluster("dns", 1, 1))
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9cluster/dns")
	e := newExternalDNS(f.fixture)
	e.release = externalDNS021
	service := e.service(e.namespace, "web", "192.0.2.7", "www.moved.example", "*.apps.moved.example")
	e.create(service)
	stopUpdates := e.startUpdates(old)
	published := map[string]string{"www": "192.0.2.7", "any.apps": "192.0.2.7", "static": "192.0.2.5", "a-dash": "192.0.2.6"}
	e.waitOldServer(old, published)

	text := f.importZone(old.Addr.String(), &old.Transfer, "--without-external-dns")
	for _, left := range []string{"192.0.2.7", "heritage", "apps"} {
		if strings.Contains(text, left) {
			t.Errorf("the import has %q:\n%s", left, text)
		}
	}
	kube.Kubectl(t, text, "-n", f.namespace, "apply", "-f", "-")
	f.waitServed("static.moved.example", "TXT", `"mine"`)
	e.startProvider()
	e.startExternalDNS(true, "--policy=sync", "--namespace="+e.namespace)
	e.waitBoth(old, published)
	f.expectOutput(0, `^\d+ of \d+ in sync\n$`, "status", "--wait", "--timeout=120s")

	change(f.fixture, service, func(s *corev1.Service) { s.Annotations[e.release.annotations+"target"] = "192.0.2.8" })
	published["www"], published["any.apps"] = "192.0.2.8", "192.0.2.8"
	e.waitBoth(old, published) // So there is a way back.
	stopUpdates()
	old.Stop()
	change(f.fixture, service, func(s *corev1.Service) { s.Annotations[e.release.annotations+"target"] = "192.0.2.9" })
	f.waitServed("www.moved.example", "A", "192.0.2.9")
	f.waitServed("any.apps.moved.example", "A", "192.0.2.9")
	f.expectOutput(0, `^\d+ of \d+ in sync\n$`, "status", "--wait", "--timeout=120s")
}

// startUpdates runs external-dns with dynamic updates of a server and its own registry of TXT records.
func (e externalDNS) startUpdates(server *namedtest.Server) (stop func()) {
	e.Helper()
	ports, err := namedtest.FreePorts(1)
	if err != nil {
		e.Fatal(err)
	}
	return e.start(true, filepath.Join(e.folder, e.release.program), "--provider=rfc2136", "--rfc2136-host="+server.Addr.Addr().String(),
		fmt.Sprintf("--rfc2136-port=%d", server.Addr.Port()), "--rfc2136-zone="+e.zone, "--rfc2136-tsig-axfr", "--rfc2136-tsig-keyname="+server.Update.Name,
		"--rfc2136-tsig-secret="+server.Update.Secret, "--rfc2136-tsig-secret-alg="+strings.TrimSuffix(server.Update.Algorithm, "."),
		"--registry=txt", "--txt-owner-id=default", "--source=service", "--namespace="+e.namespace, "--policy=sync", "--domain-filter="+e.zone,
		"--kubeconfig="+e.kubeconfig, "--interval=2s", "--events", fmt.Sprintf("--metrics-address=localhost:%d", ports[0]))
}

// waitBoth waits until the old server and those of the zone here answer alike.
func (e externalDNS) waitBoth(old *namedtest.Server, addresses map[string]string) {
	e.Helper()
	e.waitOldServer(old, addresses)
	for name, address := range addresses {
		e.waitServed(name+"."+e.zone, "A", address)
	}
}

func (e externalDNS) waitOldServer(old *namedtest.Server, addresses map[string]string) {
	e.Helper()
	kube.Eventually(e, kube.Settle, func(context.Context) error {
		for name, address := range addresses {
			got, err := queryRdata(old.Addr.String(), dns.Fqdn(name+"."+e.zone), dns.TypeA)
			if err != nil || !slices.Equal(got, []string{address}) {
				return fmt.Errorf("the old server answers %q for %s, error %w", got, name, err)
			}
		}
		return nil
	})
}
