package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"

	"github.com/lockstep-dns/lockstep/apiserver"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/controller"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"
	api "github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
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

// helpWidth is how wide the help is, in columns.
const helpWidth = 120

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "lockstep",
		Short:         "Authoritative DNS on Kubernetes, with every server provably in sync",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Module(),
	}
	bindcar := componentCommand("bindcar", "Serve the sidecar's HTTP API beside one named", sidecar.NewOptions())
	bindcar.Long += "\n\nlockstep bindcar init prepares a pod for it: see its --help."
	bindcar.AddCommand(componentCommand("init", "Prepare a BIND pod: directories and the key of named's control channel", sidecar.NewInitOptions()))
	root.AddCommand(
		componentCommand("controller", "Bring zones and records to the servers", controller.NewOptions(controllerExtensions()...)),
		componentCommand("fleet", "Run the servers of clusters and instances", controller.NewFleetOptions(fleetGuard)),
		componentCommand("apiserver", "Serve syncstatuses through the Kubernetes API", apiserver.NewOptions()),
		componentCommand("webhook", "Check and stamp objects before they are stored", webhook.NewOptions()),
		bindcar,
		componentCommand("vantage", "Ask name servers from where this runs, for the API server", vantage.NewOptions(api.APIServerIdentity)),
		rndcCommand(),
		validateCommand(),
		planCommand(),
	)
	root.AddCommand(extensionCommands()...)
	return root
}

// featured is a component with feature gates of its own.
type featured interface {
	AddFeatures(featuregate.MutableFeatureGate) error
}

// componentCommand makes a subcommand that runs a component, with the flags that all of them have in sections of their own.
func componentCommand(name, short string, c componentOptions) *cobra.Command {
	common, sections := component.NewOptions(), cliflag.NamedFlagSets{}
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Long:  short + ".",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(c.Validate(), common.Validate()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := common.Apply(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			defer logs.FlushLogs()
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go heap.ReleaseAtRest(ctx)
			return c.Run(ctx)
		},
	}
	if f, ok := c.(featured); ok {
		if err := f.AddFeatures(common.Features); err != nil {
			panic(err) // Two features of one name.
		}
	}
	own := sections.FlagSet(name)
	c.AddFlags(own)
	common.AddFlags(&sections, own)
	for _, section := range sections.Order {
		cmd.Flags().AddFlagSet(sections.FlagSets[section])
	}
	sections.FlagSet("global").BoolP("help", "h", false, "help for "+name)
	cmd.Flags().AddFlagSet(sections.FlagSet("global"))
	cliflag.SetUsageAndHelpFunc(cmd, sections, helpWidth)
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
