package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

func treeCommand(o *commandOptions) *cobra.Command {
	var watch, outOfSync bool
	cmd := &cobra.Command{
		Use:   "tree [KIND/NAME...]",
		Short: "Show clusters down to their pods, and zones down to what each server has of each record",
		Long: `Show clusters down to their pods, and zones down to what each server has of each record: state, serial, and how far it is
behind. Without names it is all that the namespace has. A zone is shown with its records, a cluster with its instances.

With --watch every change is shown as it happens: on a terminal the tree is drawn anew, elsewhere a line is added for each
object that has changed. Exit code 0, or 2 when there is trouble.` + aboutObjects,
		Example: `  # All of the namespace, or of all that you may see
  kubectl lockstep tree -n team-dns
  kubectl lockstep tree -A

  # One zone with its records, while a roll-out is under way
  kubectl lockstep tree dnszone/example-com --watch

  # Only what is not in sync
  kubectl lockstep tree --out-of-step`,
		ValidArgsFunction: o.completeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, c, err := o.parseAndConnect(args)
			if err != nil {
				return err
			}
			b, err := c.selectSubtrees(cmd.Context(), o, targets)
			if err != nil {
				return err
			}
			v := treeView{subtreeSelection: b, client: c, cmd: cmd, options: render.TreeOptions{
				Namespaces: o.allNamespaces, OutOfSync: outOfSync, Palette: o.newPalette(cmd.OutOrStdout()),
			}}
			if watch {
				return v.watchChanges(cmd.Context())
			}
			return v.printOnce(cmd.Context())
		},
	}
	o.addSelectionFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Show changes as they happen, until interrupted")
	cmd.Flags().BoolVar(&outOfSync, "out-of-step", false, "Only what is not in sync, and what that is part of")
	return cmd
}

// parseArgs reads arguments and checks them against the flags.
func (o *commandOptions) parseArgs(args []string) ([]target, error) {
	targets, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	return targets, o.validateTargets(targets)
}

// parseAndConnect reads arguments and connects to the cluster.
func (o *commandOptions) parseAndConnect(args []string) ([]target, *statusClient, error) {
	targets, err := o.parseArgs(args)
	if err != nil {
		return nil, nil, err
	}
	c, err := o.newClient()
	return targets, c, err
}

// treeView shows some branches of the tree.
type treeView struct {
	subtreeSelection
	client  *statusClient
	cmd     *cobra.Command
	options render.TreeOptions
}

func (v *treeView) printOnce(ctx context.Context) error {
	items, err := v.client.listStatuses(ctx, v.queries...)
	if err != nil {
		return err
	}
	found := statusSet{}
	for i := range items {
		found.put(&items[i])
	}
	fmt.Fprint(v.cmd.OutOrStdout(), v.renderTree(found, time.Now()))
	if len(found) == 0 {
		fmt.Fprintln(v.cmd.ErrOrStderr(), v.client.nothingFound())
	}
	return nil
}

// renderTree prints the tree, or a line that says that nothing of it is to be shown.
func (v *treeView) renderTree(w statusSet, now time.Time) string {
	o := v.options
	o.Now = now
	items := v.selectItems(w)
	text := render.Tree(items, o)
	if text == "" && len(items) > 0 {
		return render.Summary(items, o.Palette) + "\n"
	}
	return text
}

// nothingFound says that nothing was found.
func (c *statusClient) nothingFound() string {
	if c.namespace == "" {
		return "Nothing that has a SyncStatus was found."
	}
	return fmt.Sprintf("Nothing that has a SyncStatus was found in namespace %s.", c.namespace)
}
