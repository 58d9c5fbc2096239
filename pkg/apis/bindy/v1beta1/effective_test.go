package v1beta1

import (
	"testing"
	"time"
)

func TestInterval(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]struct {
		after string
		want  time.Duration
		fails bool
	}{
		"default":   {"", 30 * day, false},
		"hours":     {"720h", 30 * day, false},
		"days":      {"30d", 30 * day, false},
		"weeks":     {"4w", 28 * day, false},
		"minutes":   {"30m", 0, true},
		"no unit":   {"720", 0, true},
		"no number": {"h", 0, true},
		"negative":  {"-1h", 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := (&RNDCKeyConfig{RotateAfter: test.after}).Interval()
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestEffectiveRNDCKey(t *testing.T) {
	ref := &RNDCSecretRef{Name: "older"}
	key, keys := &RNDCKeyConfig{RotateAfter: "1h"}, &RNDCKeyConfig{RotateAfter: "2h"}
	tests := map[string]struct {
		role RoleConfig
		want func(*RNDCKeyConfig) bool
	}{
		"none":           {RoleConfig{}, func(k *RNDCKeyConfig) bool { return k == nil }},
		"older form":     {RoleConfig{RNDCSecretRef: ref}, func(k *RNDCKeyConfig) bool { return k.SecretRef == ref }},
		"other spelling": {RoleConfig{RNDCSecretRef: ref, RNDCKeys: keys}, func(k *RNDCKeyConfig) bool { return k == keys }},
		"all":            {RoleConfig{RNDCSecretRef: ref, RNDCKeys: keys, RNDCKey: key}, func(k *RNDCKeyConfig) bool { return k == key }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			instance := Bind9InstanceSpec{RNDCKey: test.role.RNDCKey, RNDCKeys: test.role.RNDCKeys, RNDCSecretRef: test.role.RNDCSecretRef}
			if got := test.role.EffectiveRNDCKey(); !test.want(got) {
				t.Errorf("role: %+v", got)
			}
			if got := instance.EffectiveRNDCKey(); !test.want(got) {
				t.Errorf("instance: %+v", got)
			}
		})
	}
	if got := (*RoleConfig)(nil).EffectiveRNDCKey(); got != nil {
		t.Errorf("no role: %+v", got)
	}
}
