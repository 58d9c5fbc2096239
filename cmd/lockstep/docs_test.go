package main

import (
	"slices"
	"testing"

	"github.com/lockstep-dns/lockstep/test/docs"
)

// TestDocumentation: lockstep has each subcommand and flag that the documentation uses, also inside of pods.
func TestDocumentation(t *testing.T) {
	docs.CheckCommands(t, newCommand, func(c docs.Command) ([]string, bool) {
		words := c.Words
		if at := slices.Index(words, "/lockstep"); at >= 0 {
			words = words[at:]
		}
		if len(words) < 2 || words[0] != "lockstep" && words[0] != "/lockstep" {
			return nil, false
		}
		return words[1:], true
	})
}
