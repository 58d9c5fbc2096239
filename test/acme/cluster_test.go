package acme

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-acme/lego/v5/providers/dns/dnsupdate"

	"github.com/lockstep-dns/lockstep/test/kube"
	testnamed "github.com/lockstep-dns/lockstep/test/named"
)

// TestCluster applies the guide's objects, and gets certificates for its names with the key from the guide's Secret. A resolver goes the
// way that they declare: alias, delegation, address of the name server.
func TestCluster(t *testing.T) {
	kube.Isolated(t)
	namespace := kube.Namespace(t, "acme")
	apply := func(address string, files ...string) {
		for _, file := range files {
			text := strings.NewReplacer("namespace: acme", "namespace: "+namespace, "192.0.2.54", address).Replace(block(t, "# "+file+"\n"))
			kube.Kubectl(t, text, "apply", "-f", "-")
		}
	}
	apply("192.0.2.54", "challenges.yaml")
	challenges := serviceAddress(t, namespace, "challenges-primary-0")
	apply(challenges, "challenges.yaml", "names.yaml", "api.yaml")
	for object, condition := range map[string]string{"cnamerecord.acme-challenge-www": "Propagated", "dnszone.challenges": "Delegated", "dnszone.challenge-api": "Delegated"} {
		kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition="+condition, "syncstatus/"+object, "--timeout=120s")
	}

	resolver := testnamed.Start(t, testnamed.Options{Resolver: fmt.Sprintf("zone %q { type static-stub; server-addresses { %s; }; };\n", "example.com", serviceAddress(t, namespace, "dns-primary-0"))})
	authority := startAuthority(t, resolver.Addr)
	config := dnsupdate.NewDefaultConfig()
	config.Nameserver, config.TSIGFile = challenges, secretKeyFile(t, namespace)
	provider, err := dnsupdate.NewDNSProviderConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"www.example.com", "api.example.com"} {
		if err := authority.obtain(t, name, provider); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	config.Nameserver = serviceAddress(t, namespace, "dns-primary-0")
	if provider, err = dnsupdate.NewDNSProviderConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := authority.obtain(t, "mail.example.com", provider); err == nil {
		t.Error("the key of challenges changes example.com")
	}
	// The challenges are gone, and so they are from the statuses.
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		foreign := kube.Kubectl(t, "", "-n", namespace, "get", "dnszones", "-o", "jsonpath={.items[*].status.foreignRRsets}")
		if foreign != "" {
			return fmt.Errorf("foreign RRsets %s", foreign)
		}
		return nil
	})
	kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition=Propagated", "syncstatus/dnszone.challenges", "syncstatus/dnszone.challenge-api", "--timeout=120s")
}

// serviceAddress waits for a Service, and returns its address.
func serviceAddress(t *testing.T, namespace, name string) (address string) {
	t.Helper()
	kube.Eventually(t, kube.Start, func(context.Context) (err error) {
		address, err = kube.TryKubectl(t, "", "-n", namespace, "get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
		if err == nil && net.ParseIP(address) == nil {
			err = fmt.Errorf("Service %s has the address %q", name, address)
		}
		return err
	})
	return address
}

// secretKeyFile is the file that the guide has made of the Secret.
func secretKeyFile(t *testing.T, namespace string) string {
	t.Helper()
	text := kube.Kubectl(t, "", "-n", namespace, "get", "secret", "challenges-update-key", "-o", `jsonpath={.data.key\.conf}`)
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "challenges.key")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
