package acme

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cmacme "github.com/cert-manager/cert-manager/pkg/apis/acme/v1"
	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/rfc2136"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/util"
	"github.com/go-acme/lego/v5/challenge/dns01"
	"github.com/go-acme/lego/v5/providers/dns/dnsupdate"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestLego: lego gets a certificate with the guide's variables, and removes its challenge.
func TestLego(t *testing.T) {
	kube.WithoutCluster(t)
	w := newWorld(t)
	legoEnvironment(t, map[string]string{"RFC2136_NAMESERVER": w.challenges.DNS().String(), "RFC2136_TSIG_FILE": keyFile(t, w.challenges)})
	provider, err := dnsupdate.NewDNSProvider()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"www.example.com", "api.example.com"} { // by an alias, and by a zone of the name itself
		if err := w.authority.obtain(t, name, provider); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	requireNoTXT(t, w.challenges, "www.acme.example.com.")
	requireNoTXT(t, w.challenges, "_acme-challenge.api.example.com.")
}

// TestCertManager: what cert-manager does for the guide's Issuer proves a name.
func TestCertManager(t *testing.T) {
	kube.WithoutCluster(t)
	w := newWorld(t)
	var issuer certmanager.Issuer
	if err := yaml.UnmarshalStrict([]byte(block(t, "kind: Issuer")), &issuer); err != nil {
		t.Fatal(err)
	}
	solver := certManager{issuer.Spec.ACME.Solvers[0].DNS01, w}
	if _, err := rfc2136.NewDNSProviderCredentials(solver.config.RFC2136.Nameserver, "", "", ""); err != nil {
		t.Error(err)
	}
	if solver.config.RFC2136.TSIGSecret.Name != "challenges-update-key" || solver.config.RFC2136.TSIGSecret.Key != "secret" {
		t.Errorf("the Issuer reads %+v", solver.config.RFC2136.TSIGSecret)
	}
	if err := w.authority.obtain(t, "www.example.com", solver); err != nil {
		t.Error(err)
	}
	requireNoTXT(t, w.challenges, "www.acme.example.com.")
}

// certManager solves challenges as the controller of cert-manager does for an Issuer, with its packages.
type certManager struct {
	config *cmacme.ACMEChallengeSolverDNS01
	world  world
}

func (s certManager) Present(ctx context.Context, domain, _, keyAuth string) error {
	return s.change(ctx, domain, keyAuth, (*rfc2136.DNSProvider).Present)
}

func (s certManager) CleanUp(ctx context.Context, domain, _, keyAuth string) error {
	return s.change(ctx, domain, keyAuth, (*rfc2136.DNSProvider).CleanUp)
}

func (s certManager) change(ctx context.Context, domain, keyAuth string, do func(p *rfc2136.DNSProvider, domain, fqdn, zone, value string) error) error {
	resolver, c := s.world.resolver.String(), s.config.RFC2136
	fqdn, err := util.DNS01LookupFQDN(ctx, domain, s.config.CNAMEStrategy == cmacme.FollowStrategy, resolver)
	if err != nil {
		return err
	}
	zone, err := util.FindZoneByFqdn(ctx, fqdn, []string{resolver})
	if err != nil {
		return err
	}
	server := s.world.challenges // which the Issuer names by its Service
	provider, err := rfc2136.NewDNSProviderCredentials(server.DNS().String(), c.TSIGAlgorithm, c.TSIGKeyName, server.UpdateKey.Secret, rfc2136.WithNetwork(string(c.Protocol)))
	if err != nil {
		return err
	}
	return do(provider, domain, fqdn, zone, dns01.GetChallengeInfo(ctx, domain, keyAuth).Value)
}

// TestCertbot: certbot gets a certificate with the guide's file and flags.
func TestCertbot(t *testing.T) {
	kube.WithoutCluster(t)
	w := newWorld(t)
	if err := w.certbot(t, "api.example.com"); err != nil {
		t.Error(err)
	}
	requireNoTXT(t, w.challenges, "_acme-challenge.api.example.com.")
	if err := w.certbot(t, "www.example.com"); err == nil || !strings.Contains(err.Error(), "Unable to determine base domain") {
		t.Errorf("certbot follows an alias: %v", err)
	}
}

func (w world) certbot(t *testing.T, name string) error {
	t.Helper()
	dir := t.TempDir()
	server := w.challenges.DNS()
	credentials := strings.NewReplacer("192.0.2.54", server.Addr().String(), "<secret>", w.challenges.UpdateKey.Secret).Replace(block(t, "dns_rfc2136_server"))
	credentials += fmt.Sprintf("dns_rfc2136_port = %d\n", server.Port())
	file := filepath.Join(dir, "challenges.ini")
	if err := os.WriteFile(file, []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	command := strings.NewReplacer("challenges.ini", file, "api.example.com", name).Replace(strings.TrimSpace(block(t, "certbot certonly")))
	args := append(strings.Fields(strings.TrimPrefix(command, "certbot ")), "--non-interactive", "--agree-tos", "--register-unsafely-without-email", "--server", w.authority.directory,
		"--config-dir", dir, "--work-dir", dir, "--logs-dir", dir)
	c := exec.CommandContext(t.Context(), "certbot", args...)
	c.Env = append(os.Environ(), "REQUESTS_CA_BUNDLE="+w.authority.certificate)
	if out, err := c.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	got, err := os.ReadFile(filepath.Join(dir, "live", name, "cert.pem"))
	if err != nil {
		return err
	}
	return isFor(got, name)
}
