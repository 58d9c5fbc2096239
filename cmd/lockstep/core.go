//go:build core

package main

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/controller"
)

// The tag "core" builds the program without extensions.
var fleetGuard controller.GuardFunc

func controllerExtensions() []controller.Extension { return nil }

func extensionCommands() []*cobra.Command { return nil }
