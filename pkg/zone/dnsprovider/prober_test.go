package dnsprovider

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/knot"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/powerdns"
)

// What a real server says to keys, right and wrong ones, becomes the condition that says what to do.
func TestLook(t *testing.T) {
	powerless, unknown := named.NewKey("powerless."), named.NewKey("unknown.")
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.test."}}, Keys: []wire.Key{powerless}})
	wrong := named.NewKey(s.Update.Name)
	gone := named.Start(t, named.Options{})
	gone.Stop()
	frozen := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.test."}}})
	if out, err := frozen.Rndc("freeze", "example.test"); err != nil {
		t.Fatal(out, err)
	}
	k, p := knot.Start(t, map[string]string{"example.test.": ""}), powerdns.Start(t, map[string]string{"example.test.": ""}, nil)
	var lateKnot *knot.Server
	var latePowerDNS *powerdns.Server
	daemon.WithClock(t, -time.Hour, func() {
		lateKnot, latePowerDNS = knot.Start(t, map[string]string{"example.test.": ""}), powerdns.Start(t, map[string]string{"example.test.": ""}, nil)
	})
	for name, c := range map[string]struct {
		zone             string
		server           netip.AddrPort
		update, transfer wire.Key
		reason, message  string
	}{
		"all is well":         {"example.test.", s.Addr, s.Update, s.Transfer, status.AllReady, "1 of 1 servers"},
		"no zone yet":         {".", s.Addr, s.Update, s.Transfer, status.AllReady, ""},
		"Knot":                {"example.test.", k.Addr, k.Update, k.Transfer, status.AllReady, "1 of 1 servers"},
		"Knot, no zone yet":   {".", k.Addr, k.Update, k.Transfer, status.NoZone, "no zone names the provider yet"},
		"PowerDNS":            {"example.test.", p.Addr, p.Update, p.Transfer, status.AllReady, "1 of 1 servers"},
		"clock of Knot":       {"example.test.", lateKnot.Addr, lateKnot.Update, lateKnot.Transfer, status.AuthenticationFailed, "more than five minutes; set the server's clock"},
		"clock of PowerDNS":   {"example.test.", latePowerDNS.Addr, latePowerDNS.Update, latePowerDNS.Transfer, status.AuthenticationFailed, "see that the server's clock is right"},
		"takes no update":     {"example.test.", frozen.Addr, frozen.Update, frozen.Transfer, status.UpdateRefused, "answered REFUSED; let the update key update the zones"},
		"unknown key":         {"example.test.", s.Addr, s.Update, unknown, status.AuthenticationFailed, "BADKEY"},
		"wrong update secret": {"example.test.", s.Addr, wrong, s.Transfer, status.AuthenticationFailed, "BADSIG"},
		"may not transfer":    {"example.test.", s.Addr, s.Update, powerless, status.TransferRefused, "allow-transfer"},
		"nobody there":        {"example.test.", gone.Addr, s.Update, s.Transfer, status.Unreachable, "do not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prober{zone: c.zone, update: &c.update, transfer: &c.transfer}
			server := observe.Server{Provider: "corp", Pod: "corp/" + c.server.String(), Role: observe.Primary, Addr: c.server}
			facts := status.ProviderFacts{Servers: []status.ProviderServerFacts{p.ask(t.Context(), server, true)}}
			got := status.Provider(v1beta1.DNSProviderStatus{}, facts, metav1.Now().Time)
			ready := got.Conditions[0]
			if ready.Type != status.Ready || ready.Reason != c.reason || !strings.Contains(ready.Message, c.message) {
				t.Errorf("%+v", got.Conditions)
			}
			var want *v1beta1.ProviderCapabilities
			if served := []string{status.AllReady, status.TransferRefused, status.UpdateRefused}; c.zone != "." && slices.Contains(served, c.reason) {
				want = &v1beta1.ProviderCapabilities{Serial: true, Transfer: c.reason != status.TransferRefused, Wildcards: true, Delegations: true}
				if c.reason != status.UpdateRefused {
					want.Atomic = new(true)
				}
			}
			if diff := cmp.Diff(want, got.Capabilities); diff != "" {
				t.Errorf("capabilities (-want +got):\n%s", diff)
			}
		})
	}
}

// Secondaries by address are asked for a serial, without a key, and for nothing else: who named another's server would get to read what it
// lets our addresses read.
func TestLookByAddress(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.test."}}})
	gone := named.Start(t, named.Options{})
	gone.Stop()
	for name, c := range map[string]struct {
		zone    string
		server  netip.AddrPort
		reason  string
		problem string
	}{
		"has the zone":    {"example.test.", s.Addr, status.AllReady, ""},
		"no zone yet":     {".", s.Addr, status.AllReady, ""},
		"not its zone":    {"example.net.", s.Addr, status.AllReady, "it does not serve example.net. as a secondary: make it one there"},
		"nobody is there": {"example.test.", gone.Addr, status.Unreachable, "do not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := prober{zone: c.zone, byAddress: true}
			server := observe.Server{Provider: "old", Pod: "old/" + c.server.String(), Role: observe.Secondary, Addr: c.server}
			facts := status.ProviderFacts{Servers: []status.ProviderServerFacts{p.ask(t.Context(), server, true)}}
			got := status.Provider(v1beta1.DNSProviderStatus{}, facts, metav1.Now().Time)
			if ready := got.Conditions[0]; ready.Reason != c.reason || !strings.Contains(ready.Message+got.Servers[0].Message, c.problem) {
				t.Errorf("%+v, %+v", got.Conditions, got.Servers)
			}
		})
	}
	if log := s.Log(); strings.Contains(log, "transfer of") || strings.Contains(log, "zone transfer") {
		t.Errorf("a transfer was tried:\n%s", log)
	}
}

// An address stays while the host name has it; addresses that nobody may name are refused.
func TestAddressOf(t *testing.T) {
	for name, c := range map[string]struct {
		was   string
		found []string
		ip    string
	}{
		"first":          {"", []string{"203.0.113.9", "203.0.113.4"}, "203.0.113.4"},
		"stays":          {"203.0.113.9", []string{"203.0.113.4", "203.0.113.9"}, "203.0.113.9"},
		"moved":          {"203.0.113.1", []string{"::ffff:203.0.113.4"}, "203.0.113.4"},
		"loopback":       {"", []string{"127.0.0.1", "::1"}, ""},
		"mapped":         {"", []string{"::ffff:127.0.0.1"}, ""},
		"metadata":       {"203.0.113.1", []string{"169.254.169.254"}, ""},
		"one is usable":  {"", []string{"127.0.0.1", "10.0.0.5"}, "10.0.0.5"},
		"none specified": {"", []string{"0.0.0.0", "224.0.0.1", "fe80::1"}, ""},
	} {
		r := Resolver{}
		r.Names.Lookup = func(_ context.Context, _, host string) (all []netip.Addr, err error) {
			if host != "ns.example.net." {
				t.Errorf("%s is looked up, which is not absolute", host)
			}
			for _, a := range c.found {
				all = append(all, netip.MustParseAddr(a))
			}
			return all, nil
		}
		if ip, problem := r.addressOf(t.Context(), "ns.example.net", c.was); ip != c.ip || (problem == "") != (c.ip != "") {
			t.Errorf("%s: %q, %q", name, ip, problem)
		}
	}
}

// Each account may read the Secrets that it needs, by name; without any, the Role permits nothing.
func TestGrants(t *testing.T) {
	key := func(name string) v1beta1.ProviderKey {
		return v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name}}
	}
	transfer := key("transfer")
	for name, c := range map[string]struct {
		spec           v1beta1.DNSProviderSpec
		ours, apiServe []string
	}{
		"two keys": {v1beta1.DNSProviderSpec{RFC2136: &v1beta1.RFC2136Provider{UpdateKey: key("update"), TransferKey: &transfer}}, []string{"transfer", "update"}, []string{"transfer"}},
		"one key":  {v1beta1.DNSProviderSpec{RFC2136: &v1beta1.RFC2136Provider{UpdateKey: key("update")}}, []string{"update"}, []string{"update"}},
		"etcd": {v1beta1.DNSProviderSpec{CoreDNS: &v1beta1.CoreDNSProvider{Etcd: v1beta1.EtcdStore{
			TLSSecretRef: &v1beta1.ProviderSecret{Name: "tls"}, CredentialsSecretRef: &v1beta1.ProviderSecret{Name: "user"},
		}}}, []string{"tls", "user"}, nil},
	} {
		p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "corp"}, Spec: c.spec}
		ours, apiServe := secretsOf(p)
		if diff := cmp.Diff([][]string{c.ours, c.apiServe}, [][]string{ours, apiServe}); diff != "" && len(apiServe)+len(c.apiServe) > 0 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if role := grantOf(&v1beta1.DNSProvider{}, client.ObjectKey{Name: "a"}, nil)[0].(*rbacv1ac.RoleApplyConfiguration); len(role.Rules) > 0 {
		t.Errorf("a Role without names permits %+v", role.Rules)
	}
}

// Only a provider that names a Service lets the controller list endpoints, and nobody else.
func TestGrantsOfService(t *testing.T) {
	p := &v1beta1.DNSProvider{}
	p.Spec.CoreDNS = &v1beta1.CoreDNSProvider{}
	if endpointsRule(p) != nil {
		t.Error("a provider without a Service has endpoints listed")
	}
	p.Spec.CoreDNS.Servers.Service = &v1beta1.ServiceReference{Name: "coredns"}
	if rule := endpointsRule(p); rule == nil || !slices.Equal(rule.Verbs, []string{"list"}) || !slices.Equal(rule.Resources, []string{"endpointslices"}) {
		t.Errorf("rule %+v", rule)
	}
}

// The endpoints of a Service are asked whether they are ready or not, unless they are on their way out or at an address that may not be used.
func TestUsableEndpoints(t *testing.T) {
	gate := outbound.NewGate(nil, outbound.Limits{Networks: outbound.Networks{netip.MustParsePrefix("10.96.0.0/12")}})
	found := usableEndpoints([]discoveryv1.EndpointSlice{
		{Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.7"}},
			{Addresses: []string{"10.0.0.5"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
			{Addresses: []string{"10.0.0.6"}, Conditions: discoveryv1.EndpointConditions{Terminating: new(true)}},
			{Addresses: []string{"169.254.169.254"}},
			{Addresses: []string{"127.0.0.1"}},
		}},
		{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fd00::5"}}, {Addresses: []string{"10.0.0.7"}}, {Addresses: []string{"name.test"}}, {Addresses: []string{"10.96.0.10"}}}},
	}, gate)
	want := []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::5")}
	if !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}
