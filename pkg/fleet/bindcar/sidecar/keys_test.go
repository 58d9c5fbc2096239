package sidecar

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/signingkeys"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// shelf keeps keys in memory, by the name of their Secret.
type shelf struct {
	mu      sync.Mutex
	secrets map[string]map[string][]byte
}

func (s *shelf) Load(_ context.Context, secret string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, ok := s.secrets[secret]
	if !ok {
		return nil, fmt.Errorf("there is no Secret %s", secret)
	}
	return maps.Clone(files), nil
}

func (s *shelf) Save(_ context.Context, secret string, before, after map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := maps.Clone(s.secrets[secret])
	for entry := range before {
		delete(files, entry)
	}
	maps.Copy(files, after)
	s.secrets[secret] = files
	return nil
}

func startWithKeys(t *testing.T, secrets ...string) (*sidecar, *shelf) {
	keys := &shelf{secrets: map[string]map[string][]byte{}}
	for _, secret := range secrets {
		keys.secrets[secret] = map[string][]byte{"somebody": []byte("else's")}
	}
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	s.keepKeysIn(keys)
	return s, keys
}

// keepKeysIn lets the server start anew with a store, without a memory of what it saved.
func (s *sidecar) keepKeysIn(keys *shelf) {
	s.server.signingKeys = signingkeys.NewKeeper(s.server.zones, func() (signingkeys.Store, error) { return keys, nil })
}

func signedZone(s *sidecar, name, secret string) bindcar.CreateZone {
	z := primaryZone(name, s.UpdateKey.Name)
	z.ZoneConfig.DNSSECPolicy, z.ZoneConfig.KeySecret = "default", secret
	return z
}

// dnskeys waits until the zone is signed, and gives its keys.
func dnskeys(t *testing.T, s *sidecar, zone string) []string {
	t.Helper()
	var keys []string
	within(t, func() error {
		reply, err := wire.Query(testContext(t), s.DNS(), dns.Fqdn(zone), dns.TypeDNSKEY)
		if err != nil {
			return err
		}
		keys = nil
		for _, rr := range reply.Msg.Answer {
			if key, ok := rr.(*dns.DNSKEY); ok {
				keys = append(keys, key.PublicKey)
			}
		}
		if len(keys) == 0 {
			return fmt.Errorf("%s has no DNSKEY", zone)
		}
		return nil
	})
	return keys
}

func within(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// TestKeysOutliveTheVolume: a zone whose keys are kept is signed by the same keys after all files are lost.
func TestKeysOutliveTheVolume(t *testing.T) {
	for _, zone := range []string{"signed.example", "0/25.2.0.192.in-addr.arpa"} {
		t.Run(zone, func(t *testing.T) {
			s, keys := startWithKeys(t, "kept")
			ctx := testContext(t)
			if err := s.client.CreateZone(ctx, s.addr, signedZone(s, zone, "kept")); err != nil {
				t.Fatal(err)
			}
			kept, _ := keys.Load(ctx, "kept")
			if len(kept) != 4 || string(kept["somebody"]) != "else's" {
				t.Fatalf("the Secret has %d entries, want a key of three files and what it had", len(kept))
			}
			before := dnskeys(t, s, zone)
			if err := s.client.DeleteZone(ctx, s.addr, zone, bindcar.Owner{}); err != nil {
				t.Fatal(err)
			}
			wipeKeys(t, s)
			s.keepKeysIn(keys)
			if err := s.client.CreateZone(ctx, s.addr, signedZone(s, zone, "kept")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, dnskeys(t, s, zone)); diff != "" {
				t.Errorf("the zone has other keys (-before +after):\n%s", diff)
			}
		})
	}
}

func wipeKeys(t *testing.T, s *sidecar) {
	t.Helper()
	entries, err := os.ReadDir(s.Layout.ZonesDir)
	if err != nil {
		t.Fatal(err)
	}
	wiped := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "K") {
			wiped++
			if err := os.Remove(s.Layout.ZonesDir + "/" + e.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if wiped == 0 {
		t.Fatal("there was no key to lose")
	}
}

// TestKeysThatNamedChanges: what named writes into a key's files later is kept too.
func TestKeysThatNamedChanges(t *testing.T) {
	s, keys := startWithKeys(t, "kept")
	ctx := testContext(t)
	if err := s.client.CreateZone(ctx, s.addr, signedZone(s, "rolled.example", "kept")); err != nil {
		t.Fatal(err)
	}
	dnskeys(t, s, "rolled.example")
	reply, err := wire.Query(ctx, s.DNS(), "rolled.example.", dns.TypeDNSKEY)
	if err != nil {
		t.Fatal(err)
	}
	tag := reply.Msg.Answer[0].(*dns.DNSKEY).KeyTag()
	if err := s.client.CheckDS(ctx, s.addr, "rolled.example", bindcar.CheckDS{KeyTag: tag + 1, Published: true}); err == nil {
		t.Error("named was told of a key that it has not")
	}
	if err := s.client.CheckDS(ctx, s.addr, "rolled.example", bindcar.CheckDS{KeyTag: tag, Published: true}); err != nil {
		t.Fatal(err)
	}
	within(t, func() error {
		if err := s.server.signingKeys.SaveAll(ctx); err != nil {
			return err
		}
		kept, _ := keys.Load(ctx, "kept")
		for entry, content := range kept {
			if strings.HasSuffix(entry, ".state") && strings.Contains(string(content), "DSPublish") {
				return nil
			}
		}
		return fmt.Errorf("the kept state does not tell of the DS record")
	})
}

// TestZoneWithoutItsSecret is not added, and can be once the Secret is there.
func TestZoneWithoutItsSecret(t *testing.T) {
	s, keys := startWithKeys(t)
	ctx := testContext(t)
	err := s.client.CreateZone(ctx, s.addr, signedZone(s, "early.example", "later"))
	if err == nil || !strings.Contains(err.Error(), "later") {
		t.Fatalf("got %v, want an error that names the Secret", err)
	}
	if _, err := s.client.Zone(ctx, s.addr, "early.example"); !bindcar.IsNotFound(err) {
		t.Errorf("the zone was left behind: %v", err)
	}
	keys.secrets["later"] = map[string][]byte{}
	if err := s.client.CreateZone(ctx, s.addr, signedZone(s, "early.example", "later")); err != nil {
		t.Error(err)
	}
}

// TestSigningIsTurnedOnAndOff on a zone that is served: it is signed while it goes on, and unsigned by "insecure" alone.
func TestSigningIsTurnedOnAndOff(t *testing.T) {
	s, keys := startWithKeys(t, "kept")
	ctx := testContext(t)
	if err := s.client.CreateZone(ctx, s.addr, primaryZone("turn.example", s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	set := func(policy string) {
		t.Helper()
		if err := s.client.PatchZone(ctx, s.addr, "turn.example", bindcar.PatchZone{DNSSECPolicy: &policy, KeySecret: ptrTo("kept")}); err != nil {
			t.Fatal(err)
		}
		zone, err := s.client.Zone(ctx, s.addr, "turn.example")
		if err != nil || zone.DNSSECPolicy != policy || zone.KeySecret != "kept" {
			t.Errorf("the zone tells policy %q and Secret %q (%v)", zone.DNSSECPolicy, zone.KeySecret, err)
		}
	}
	set("default")
	dnskeys(t, s, "turn.example")
	if kept, _ := keys.Load(ctx, "kept"); len(kept) != 4 {
		t.Error("the keys are not kept")
	}
	set("insecure")
	within(t, func() error {
		reply, err := wire.Query(ctx, s.DNS(), "turn.example.", dns.TypeDNSKEY)
		if err == nil && len(reply.Msg.Answer) > 0 {
			err = fmt.Errorf("it still has keys: %v", reply.Msg.Answer)
		}
		return err
	})
	unknown := "nobody-defined-it"
	if err := s.client.PatchZone(ctx, s.addr, "turn.example", bindcar.PatchZone{DNSSECPolicy: &unknown}); err == nil {
		t.Error("a policy that named does not know was taken")
	}
}

// TestPoliciesThatNamedTakes: named starts with every policy that the options can make, and signs with it.
func TestPoliciesThatNamedTakes(t *testing.T) {
	for name, signing := range map[string]v1beta1.DNSSECSigningConfig{
		"two keys": {KSKLifetime: "1y", ZSKLifetime: "14d"},
		"nsec3":    {NSEC3: ptrTo(true), NSEC3Salt: "AABBCCDD", Algorithm: "ED25519"},
	} {
		t.Run(name, func(t *testing.T) {
			signing.Enabled = true
			s := startBeside(t, namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, func(c *named.Config) {
				c.Options.DNSSEC = &v1beta1.DNSSECConfig{Signing: &signing}
			}))
			z := primaryZone("policy.example", s.UpdateKey.Name)
			z.ZoneConfig.DNSSECPolicy = "signing"
			if err := s.client.CreateZone(testContext(t), s.addr, z); err != nil {
				t.Fatal(err)
			}
			dnskeys(t, s, "policy.example")
		})
	}
}
