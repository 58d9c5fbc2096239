//go:build !core

package main

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/extensions/clusterapi"
	"github.com/lockstep-dns/lockstep/extensions/externaldns"
	"github.com/lockstep-dns/lockstep/extensions/uninstall"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/controller"
)

// fleetGuard completes an uninstallation before the fleet manager ends.
var fleetGuard controller.GuardFunc = uninstall.Guard

// controllerExtensions run in the controller's process besides the controller.
func controllerExtensions() []controller.Extension {
	return []controller.Extension{&clusterapi.Extension{}}
}

// extensionCommands are the subcommands of what can be left out.
func extensionCommands() []*cobra.Command {
	return []*cobra.Command{
		component.NewCommand("externaldns", "Publish what external-dns finds: its webhook provider, in the same pod", externaldns.NewOptions()),
		importCommand(),
	}
}
