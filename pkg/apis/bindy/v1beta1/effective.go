package v1beta1

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Normalize gives the role in lower case, as RolePrimary or RoleSecondary.
func (r ServerRole) Normalize() ServerRole { return ServerRole(strings.ToLower(string(r))) }

// EffectiveRNDCKey is the role's rndc key in whichever of its spellings it was given: rndcKey, then rndcKeys, then
// rndcSecretRef. Nil means that the role leaves the choice to others.
func (c *RoleConfig) EffectiveRNDCKey() *RNDCKeyConfig {
	if c == nil {
		return nil
	}
	return firstRNDCKey(c.RNDCKey, c.RNDCKeys, c.RNDCSecretRef)
}

// EffectiveRNDCKey is the instance's rndc key in whichever of its spellings it was given: rndcKey, then rndcKeys, then
// rndcSecretRef. Nil means that the instance leaves the choice to its cluster.
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

// Interval is rotateAfter as a duration; 30 days when it is empty.
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
