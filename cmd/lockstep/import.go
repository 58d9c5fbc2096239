package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/zoneimport"
)

// importCommand gives errors the exit status that the command's help promises; ErrIncomplete has 1, as by default.
func importCommand() *cobra.Command {
	withStatus := func(err error) error {
		if err == nil || errors.Is(err, zoneimport.ErrIncomplete) {
			return err
		}
		return exitError{2, err}
	}
	cmd := zoneimport.NewCommand("lockstep")
	checkArgs, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error { return withStatus(checkArgs(cmd, args)) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return withStatus(run(cmd, args)) }
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withStatus(err) })
	return cmd
}
