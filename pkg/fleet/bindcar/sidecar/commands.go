package sidecar

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

// Commands are those of the containers of a BIND pod: the sidecar, the init container, and rndc, for people.
func Commands() []*cobra.Command {
	bindcar := component.NewCommand("bindcar", "Serve the sidecar's HTTP API beside one named", NewOptions())
	bindcar.Long += "\n\nlockstep bindcar init prepares a pod for it: see its --help."
	bindcar.AddCommand(component.NewCommand("init", "Prepare a BIND pod: directories and the key of named's control channel", NewInitOptions()))
	return []*cobra.Command{bindcar, rndcCommand()}
}

func rndcCommand() *cobra.Command {
	options := NewRNDCOptions()
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
