package main

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/apiserver"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/controller"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"
	api "github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/sidecar"
	"github.com/lockstep-dns/lockstep/pkg/version"
	"github.com/lockstep-dns/lockstep/webhook"
)

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "lockstep",
		Short:         "Authoritative DNS on Kubernetes, with every server provably in sync",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Module(),
	}
	root.AddCommand(
		component.NewCommand("controller", "Bring zones and records to the servers", controller.NewOptions(controllerExtensions()...)),
		component.NewCommand("fleet", "Run the servers of clusters and instances", controller.NewFleetOptions(fleetGuard)),
		component.NewCommand("apiserver", "Serve syncstatuses through the Kubernetes API", apiserver.NewOptions()),
		component.NewCommand("webhook", "Check and stamp objects before they are stored", webhook.NewOptions()),
		component.NewCommand("vantage", "Ask name servers from where this runs, for the API server", vantage.NewOptions(api.APIServerIdentity)),
		validateCommand(),
		planCommand(),
	)
	root.AddCommand(sidecar.Commands()...)
	root.AddCommand(extensionCommands()...)
	return root
}
