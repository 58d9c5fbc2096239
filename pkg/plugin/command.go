package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/plugin/preview"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/version"
)

// Exit codes. diff has the same meanings for its own question.
const (
	exitOK        = 0
	exitNotInSync = 1 // not in sync; different; would change; not confirmed; not all imported; steps left; not well
	exitError     = 2 // the question could not be answered
)

// errNotInSync ends a command with exitNot. It is not an error, and has been reported already.
var errNotInSync = errors.New("not in sync")

// Extension is a command that the others can do without.
type Extension struct {
	// NewCommand returns the command of a program, which connects as the kubeconfig says.
	NewCommand func(program string, kubeconfig clientcmd.ClientConfig) *cobra.Command
	// Undone is the error of a command that has printed what it could not do.
	Undone error
}

// Run runs the plugin with the arguments that follow its name, and gives the exit code of the process.
func Run(ctx context.Context, args []string, out, errOut io.Writer, extensions ...Extension) int {
	root := NewCommand(extensions...) //nolint:contextcheck // cobra hands the context on
	root.SetArgs(args)
	out, errOut = &render.SafeWriter{Out: out}, &render.SafeWriter{Out: errOut}
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	code := exitCodeOf(err, extensions...)
	if code == exitError {
		fmt.Fprintln(errOut, "error:", err)
	}
	return code
}

// exitCodeOf returns the exit code of a command that ended with an error, or without one.
func exitCodeOf(err error, extensions ...Extension) int {
	answers := []error{errNotInSync, errNotConfirmed, errUnhealthy, preview.ErrChanges}
	for _, e := range extensions {
		answers = append(answers, e.Undone)
	}
	switch {
	case err == nil:
		return exitOK
	case slices.ContainsFunc(answers, func(answer error) bool { return errors.Is(err, answer) }):
		return exitNotInSync
	}
	return exitError
}

// NewCommand returns the plugin's command, with subcommands of extensions.
func NewCommand(extensions ...Extension) *cobra.Command {
	root := &cobra.Command{
		Use:         "kubectl-lockstep",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl lockstep"},
		Short:       "Does every DNS server serve what I declared?",
		Long: `Does every authoritative DNS server, right now, serve what I declared?

The answers come from the SyncStatus API: they are computed when you ask, from what each server says. kubectl's other
flags for how to connect work as well (--token, --as-group, --certificate-authority and so on).`,
		Example: `  # Everything in the namespace as a tree: clusters with their pods, zones with their records and servers
  kubectl lockstep tree

  # Publish, and go on when every server has it
  kubectl apply -f www.yaml && kubectl lockstep status arecord/www --wait

  # What would change, before it does
  kubectl lockstep plan -f dns/

  # What the servers serve that is not declared, and the other way round
  kubectl lockstep diff dnszone/example-com`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Module(),
		Args:          cobra.NoArgs, // else a mistyped command would end well
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// Shells complete plugins by way of kubectl: see the script kubectl_complete-lockstep.
	root.CompletionOptions.DisableDefaultCmd = true
	o := newOptions()
	o.addFlags(root.PersistentFlags())
	root.AddCommand(treeCommand(o), statusCommand(o), diffCommand(o), pathCommand(o), chainCommand(o), uiCommand(o), doctorCommand(o),
		preview.NewCommand("kubectl lockstep", o.kubeconfig(), o.newPalette), confirmCommand(o))
	for _, extension := range extensions {
		root.AddCommand(extension.NewCommand("kubectl lockstep", o.kubeconfig()))
	}
	return root
}

const aboutObjects = `

Objects are named as for kubectl (KIND/NAME, or KIND and then names), or as their SyncStatus is (arecord.www). Every kind
that has a SyncStatus will do: zones, records, DNSEndpoints, instances and clusters.`
