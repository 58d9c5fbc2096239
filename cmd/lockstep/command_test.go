package main

import (
	"strings"
	"testing"
)

// TestRNDCArguments: arguments of named's own commands are not taken for flags of ours.
func TestRNDCArguments(t *testing.T) {
	cmd := newCommand()
	cmd.SetArgs([]string{"rndc", "--rndc-key-file=/nonexistent", "dnssec", "-checkds", "-key", "7", "published", "example.com"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("the error is %v, want one about the key file", err)
	}
}
