//go:build !core

package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/extensions/zoneimport"
)

// importCommand gives errors the exit status that the command's help promises.
func importCommand() *cobra.Command {
	withStatus := func(err error) error {
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zoneimport.ErrIncomplete):
			return exitError{code: 1, err: err, printed: true}
		}
		return exitError{code: 2, err: err}
	}
	loading, overrides := clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}
	cmd := zoneimport.NewCommand("lockstep", clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, overrides))
	cmd.Flags().StringVar(&loading.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "`file` to reach the cluster of a DNSProvider with, instead of $KUBECONFIG or ~/.kube/config")
	cmd.Flags().StringVar(&overrides.CurrentContext, clientcmd.FlagContext, "", "`name` of the context to use in the kubeconfig")
	checkArgs, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error { return withStatus(checkArgs(cmd, args)) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return withStatus(run(cmd, args)) }
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withStatus(err) })
	return cmd
}
