package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// Commands are those of the containers of a BIND pod: the sidecar, the init container, and rndc, for people.
func Commands() []*cobra.Command {
	bindcar := component.NewCommand("bindcar", "Serve the sidecar's HTTP API beside one named", NewOptions())
	bindcar.Long += "\n\nlockstep bindcar init prepares a pod for it: see its --help."
	bindcar.AddCommand(component.NewCommand("init", "Prepare a BIND pod: directories, the key of named's control channel, and its configuration", NewInitOptions()))
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

// RNDCOptions configure the command that people run inside a pod:
//
//	kubectl exec POD -c bindcar -- /lockstep rndc status
type RNDCOptions struct {
	// Address and KeyFile lead to named's control channel.
	Address, KeyFile string
	// Timeout of the command.
	Timeout time.Duration
}

// NewRNDCOptions returns the options that hold inside a pod.
func NewRNDCOptions() *RNDCOptions {
	o := NewOptions()
	return &RNDCOptions{Address: o.RNDCAddress, KeyFile: o.RNDCKeyFile, Timeout: time.Minute}
}

// AddFlags registers the options' flags.
func (o *RNDCOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Address, "rndc-address", o.Address, "Address of named's control channel.")
	fs.StringVar(&o.KeyFile, "rndc-key-file", o.KeyFile, "File with the key of named's control channel.")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long the command may take.")
}

// Run sends one command, as rndc(8) has them, and writes named's response to out.
func (o *RNDCOptions) Run(ctx context.Context, command []string, out io.Writer) error {
	if len(command) == 0 {
		return errors.New("rndc: a command is needed, for example status")
	}
	key, err := rndc.ReadKey(o.KeyFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	control := rndc.NewClient(o.Address, key)
	defer func() { _ = control.Close() }()
	text, err := control.Command(ctx, strings.Join(command, " "))
	if err != nil {
		return err
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err = fmt.Fprint(out, text)
	return err
}
