// Command lockstep-sidecar is what runs beside each named: the program lockstep, with the commands of BIND pods alone. It is small because
// there may be thousands of it. Its image has it as /lockstep, so that pods can run either program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/sidecar"
	"github.com/lockstep-dns/lockstep/pkg/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal does not wait.
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lockstep:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "lockstep", Short: "Serve, prepare and control a BIND pod", SilenceUsage: true, SilenceErrors: true, Version: version.Module(),
	}
	root.AddCommand(sidecar.Commands()...)
	return root
}
