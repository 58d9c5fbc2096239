package v1beta1

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Normalize returns the role in lower case: RolePrimary or RoleSecondary.
func (r ServerRole) Normalize() ServerRole { return ServerRole(strings.ToLower(string(r))) }

// EffectiveRNDCKey returns the first of rndcKey, rndcKeys and rndcSecretRef that the role sets, or nil if it sets none.
func (c *RoleConfig) EffectiveRNDCKey() *RNDCKeyConfig {
	if c == nil {
		return nil
	}
	return firstRNDCKey(c.RNDCKey, c.RNDCKeys, c.RNDCSecretRef)
}

// EffectiveRNDCKey returns the first of rndcKey, rndcKeys and rndcSecretRef that the instance sets. Nil means that the
// cluster's applies.
func (s *Bind9InstanceSpec) EffectiveRNDCKey() *RNDCKeyConfig {
	return firstRNDCKey(s.RNDCKey, s.RNDCKeys, s.RNDCSecretRef)
}

func firstRNDCKey(key, keys *RNDCKeyConfig, ref *RNDCSecretRef) *RNDCKeyConfig {
	switch {
	case key != nil:
		return key
	case keys != nil:
		return keys
	case ref != nil:
		return &RNDCKeyConfig{Algorithm: ref.Algorithm, SecretRef: ref}
	}
	return nil
}

// Interval returns rotateAfter as a duration, or 30 days if it is empty.
func (c *RNDCKeyConfig) Interval() (time.Duration, error) {
	if c.RotateAfter == "" {
		return 30 * 24 * time.Hour, nil
	}
	number, unit := c.RotateAfter[:len(c.RotateAfter)-1], c.RotateAfter[len(c.RotateAfter)-1]
	n, err := strconv.Atoi(number)
	hours, known := map[byte]int{'h': 1, 'd': 24, 'w': 7 * 24}[unit]
	if err != nil || !known || n < 0 {
		return 0, fmt.Errorf("rotateAfter %q is not a number of hours (h), days (d) or weeks (w)", c.RotateAfter)
	}
	return time.Duration(n*hours) * time.Hour, nil
}
