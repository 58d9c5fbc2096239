package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/apiserver"
	"github.com/lockstep-dns/lockstep/pkg/controller"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/sidecar"
	"github.com/lockstep-dns/lockstep/pkg/heap"
	"github.com/lockstep-dns/lockstep/pkg/version"
	"github.com/lockstep-dns/lockstep/webhook"
)

// componentOptions is what a subcommand runs.
type componentOptions interface {
	// AddFlags registers the component's flags with their defaults.
	AddFlags(*pflag.FlagSet)
	// Validate names every flag that is wrong.
	Validate() error
	// Run works until it is done, the context ends, or something fails for good.
	Run(context.Context) error
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "lockstep",
		Short:         "Authoritative DNS on Kubernetes, with every server provably in sync",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Module(),
	}
	bindcar := componentCommand("bindcar", "Serve the sidecar's HTTP API beside one named", sidecar.NewOptions())
	bindcar.AddCommand(componentCommand("init", "Prepare a BIND pod: directories and the key of named's control channel", sidecar.NewInitOptions()))
	root.AddCommand(
		componentCommand("controller", "Bring zones and records to the servers", controller.NewOptions(controllerExtensions()...)),
		componentCommand("fleet", "Run the servers of clusters and instances", controller.NewFleetOptions(fleetGuard)),
		componentCommand("apiserver", "Serve syncstatuses through the Kubernetes API", apiserver.NewOptions()),
		componentCommand("webhook", "Check and stamp objects before they are stored", webhook.NewOptions()),
		bindcar,
		rndcCommand(),
		validateCommand(),
	)
	root.AddCommand(extensionCommands()...)
	return root
}

func componentCommand(name, short string, c componentOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Validate(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go heap.ReleaseAtRest(ctx)
			return c.Run(ctx)
		},
	}
	c.AddFlags(cmd.Flags())
	return cmd
}

func rndcCommand() *cobra.Command {
	options := sidecar.NewRNDCOptions()
	cmd := &cobra.Command{
		Use:     "rndc COMMAND [ARGUMENT...]",
		Short:   "Send a command to the named of this pod, as rndc(8) does",
		Example: "  kubectl exec dns-primary-0-0 -c bindcar -- /lockstep rndc zonestatus example.com",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return options.Run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	options.AddFlags(cmd.Flags())
	cmd.Flags().SetInterspersed(false) // What follows the command is named's: dnssec -checkds.
	return cmd
}
