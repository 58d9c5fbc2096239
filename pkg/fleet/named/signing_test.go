package named

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
)

func TestSigningPolicy(t *testing.T) {
	type config = v1beta1.DNSSECSigningConfig
	for name, c := range map[string]struct {
		signing *config
		enabled *bool
		release releases.Release
		policy  string
		has     []string
		wrong   string
	}{
		"nothing":                {policy: "none"},
		"not enabled":            {signing: &config{Policy: "default"}, policy: "none"},
		"the older form":         {enabled: new(true), policy: "default"},
		"the older form is over": {enabled: new(true), signing: &config{}, policy: "none"},
		"enabled":                {signing: &config{Enabled: true}, policy: "default"},
		"by name":                {signing: &config{Enabled: true, Policy: "ours"}, policy: "ours", has: []string{`dnssec-policy "ours" {`, "csk lifetime unlimited algorithm ecdsap256sha256;"}},
		"built in":               {signing: &config{Enabled: true, Policy: "insecure", Algorithm: "ED25519"}, policy: "insecure"},
		"an algorithm":           {signing: &config{Enabled: true, Algorithm: "ed25519"}, policy: "signing", has: []string{`dnssec-policy "signing" {`, "algorithm ed25519;"}},
		"default is named's own": {signing: &config{Enabled: true, Policy: "default", Algorithm: "ED25519"}, policy: "signing"},
		"lifetimes": {signing: &config{Enabled: true, KSKLifetime: "1y", ZSKLifetime: "3m"}, policy: "signing",
			has: []string{"ksk lifetime 31536000 algorithm", "zsk lifetime 7776000 algorithm"}},
		"one lifetime": {signing: &config{Enabled: true, ZSKLifetime: "2160h"}, policy: "signing", has: []string{"ksk lifetime unlimited", "zsk lifetime 7776000"}},
		"nsec3": {signing: &config{Enabled: true, NSEC3: new(true), NSEC3Salt: "AABBCCDD"}, policy: "signing",
			has: []string{"nsec3param iterations 0 optout no salt-length 4;"}},
		"too many iterations": {signing: &config{Enabled: true, NSEC3: new(true), NSEC3Iterations: new(int32(5))}, release: releases.BIND920, policy: "signing",
			wrong: "dnssec.signing.nsec3Iterations: BIND 9.20 takes at most 0"},
		"iterations":        {signing: &config{Enabled: true, NSEC3: new(true), NSEC3Iterations: new(int32(5))}, policy: "signing", has: []string{"nsec3param iterations 5 "}},
		"too short":         {signing: &config{Enabled: true, ZSKLifetime: "13d"}, policy: "signing", wrong: "dnssec.signing.zskLifetime"},
		"no unit":           {signing: &config{Enabled: true, KSKLifetime: "100x"}, policy: "signing", wrong: "dnssec.signing.kskLifetime"},
		"a weak algorithm":  {signing: &config{Enabled: true, Algorithm: "RSASHA1"}, policy: "signing", wrong: "dnssec.signing.algorithm"},
		"no name for named": {signing: &config{Enabled: true, Policy: "1st"}, policy: "1st", wrong: "dnssec.signing.policy"},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{Layout: PodLayout(), Role: v1beta1.RolePrimary, Release: c.release}
			config.Options.DNSSEC = &v1beta1.DNSSECConfig{Enabled: c.enabled, Signing: c.signing}
			if got := SigningPolicy(config.Options); got != c.policy {
				t.Errorf("zones are signed by %q, want %q", got, c.policy)
			}
			files, err := Render(config)
			if c.wrong != "" {
				if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("got %v, want an error about %s", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.has {
				if !strings.Contains(files[OptionsFile], part) {
					t.Errorf("no %q in\n%s", part, files[OptionsFile])
				}
			}
			if len(c.has) == 0 && c.policy == "none" && strings.Contains(files[OptionsFile], "dnssec-policy") {
				t.Errorf("a policy is defined:\n%s", files[OptionsFile])
			}
			config.Role = v1beta1.RoleSecondary
			if files, err := Render(config); err != nil || strings.Contains(files[OptionsFile], "dnssec-policy") {
				t.Errorf("a secondary has a policy (%v)", err)
			}
		})
	}
}

func TestExportsKeys(t *testing.T) {
	signs := func(export *bool) v1beta1.Bind9Config {
		return v1beta1.Bind9Config{DNSSEC: &v1beta1.DNSSECConfig{Signing: &v1beta1.DNSSECSigningConfig{Enabled: true, ExportToSecret: export}}}
	}
	if !ExportsKeys(v1beta1.Bind9Config{}) || !ExportsKeys(signs(nil)) || ExportsKeys(signs(new(false))) {
		t.Error("keys are kept in a Secret unless exportToSecret is false")
	}
}
