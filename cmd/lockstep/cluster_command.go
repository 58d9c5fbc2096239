package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterCommand makes a subcommand that kubectl-lockstep has as well: with flags for how to connect, and with the exit status that its help
// promises. incomplete is the error of one that has done its work and has something to report, already printed.
func clusterCommand(purpose string, incomplete error, newCommand func(clientcmd.ClientConfig) *cobra.Command) *cobra.Command {
	withStatus := func(err error) error {
		switch {
		case err == nil:
			return nil
		case errors.Is(err, incomplete):
			return exitError{code: 1, err: err, printed: true}
		}
		return exitError{code: 2, err: err}
	}
	loading, overrides := clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}
	cmd := newCommand(clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, overrides))
	cmd.Flags().StringVar(&loading.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "`file` to "+purpose+", instead of $KUBECONFIG or ~/.kube/config")
	cmd.Flags().StringVar(&overrides.CurrentContext, clientcmd.FlagContext, "", "`name` of the context to use in the kubeconfig")
	if cmd.Flags().Lookup(clientcmd.FlagNamespace) == nil {
		cmd.Flags().StringVarP(&overrides.Context.Namespace, clientcmd.FlagNamespace, "n", "", "namespace of objects that name none")
	}
	checkArgs, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error { return withStatus(checkArgs(cmd, args)) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return withStatus(run(cmd, args)) }
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withStatus(err) })
	return cmd
}
