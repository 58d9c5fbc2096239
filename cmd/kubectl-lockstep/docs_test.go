//go:build !core

package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/plugin"
	"github.com/lockstep-dns/lockstep/test/docs"
)

// TestDocumentation: the plugin has each subcommand and flag that the documentation uses.
func TestDocumentation(t *testing.T) {
	docs.CheckCommands(t, func() *cobra.Command { return plugin.NewCommand(extensions...) }, func(c docs.Command) ([]string, bool) {
		if len(c.Words) < 3 || c.Program() != "kubectl" || c.Words[1] != "lockstep" {
			return nil, false
		}
		return c.Words[2:], true
	})
}
