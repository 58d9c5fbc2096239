package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

func statusCommand(o *commandOptions) *cobra.Command {
	var wait, quiet bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status [KIND/NAME...]",
		Short: "Report what is in sync, one line per object; the exit code says whether all is",
		Long: `Report what is in sync, one line per object. Without names it covers the whole namespace, and shows only what is not in
sync.

Exit code 0: everything is in sync. 1: something is not. 2: an error, or nothing to evaluate.

With --wait the command ends as soon as everything is in sync, or after --timeout. Named objects are evaluated as they are
in the cluster at that moment, so a change that you have just applied is never missed.` + aboutObjects,
		Example: `  # What is not in sync in the namespace
  kubectl lockstep status

  # In a pipeline: go on when the name is really live
  kubectl apply -f www.yaml && kubectl lockstep status arecord/www --wait --timeout=2m

  # All zones of the cluster
  kubectl lockstep status dnszones -A`,
		ValidArgsFunction: o.completeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return fmt.Errorf("--timeout=%s: it cannot be below 0", timeout)
			}
			targets, c, err := o.parseAndConnect(args)
			if err != nil {
				return err
			}
			items, err := c.findTargets(cmd.Context(), o, targets)
			if err == nil && wait && len(notInSync(items)) > 0 {
				items, err = c.awaitInSync(cmd.Context(), o, targets, items, timeout)
			}
			switch {
			case err != nil:
				return err
			case len(items) == 0:
				return errors.New(c.nothingFound())
			}
			if !quiet {
				o.printVerdicts(cmd, items, len(targets) > 0)
			}
			if len(notInSync(items)) > 0 {
				return errNotInSync
			}
			return nil
		},
	}
	o.addSelectionFlags(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "Wait until everything is in sync")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "How long to wait with --wait; 0 means forever")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "Print nothing, only set the exit code")
	return cmd
}

// printVerdicts prints verdicts: all, or only those that are not in sync.
func (o *commandOptions) printVerdicts(cmd *cobra.Command, items []v1alpha1.SyncStatus, all bool) {
	shown, out := items, cmd.OutOrStdout()
	if !all {
		shown = notInSync(items)
	}
	p := o.newPalette(out)
	fmt.Fprint(out, render.Verdicts(shown, o.allNamespaces, time.Now(), p))
	fmt.Fprintln(out, render.Summary(items, p))
}

// awaitInSync follows the targets until all are in sync, or the time is over, and gives what was seen last: at least what they were.
// What was named and is no more is an error.
func (c *statusClient) awaitInSync(ctx context.Context, o *commandOptions, targets []target, were []v1alpha1.SyncStatus, timeout time.Duration) ([]v1alpha1.SyncStatus, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var over <-chan time.Time
	if timeout > 0 {
		over = time.After(timeout)
	}
	events, seen, begun := c.followStatuses(ctx, o.queriesFor(targets)...), statusSet{}, false
	var lost error
	for {
		select {
		case e := <-events:
			seen.applyEvent(e)
			begun = begun || e.synced
			if e.connectionError != nil || e.connected {
				lost = e.connectionError
			}
			switch {
			case lost != nil && !begun:
				return nil, lost
			case begun && len(notInSync(seen.sortedItems())) == 0:
				return seen.sortedItems(), c.checkNamedExist(seen, targets)
			}
		case <-over:
			if !begun {
				return were, nil
			}
			return seen.sortedItems(), cmp.Or(lost, c.checkNamedExist(seen, targets))
		case <-ctx.Done():
			return nil, errors.New("interrupted")
		}
	}
}

// checkNamedExist fails with the first target that does not exist.
func (c *statusClient) checkNamedExist(w statusSet, targets []target) error {
	for _, t := range targets {
		if t.name != "" && w[statusKey{c.namespace, t.statusName()}] == nil {
			return fmt.Errorf("there is no %s %s in namespace %s any more", t.kind.Kind, t.name, c.namespace)
		}
	}
	return nil
}
