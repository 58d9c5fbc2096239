package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// errNotCompared ends diff when some servers could not be compared.
var errNotCompared = errors.New("not everything could be compared")

func diffCommand(o *commandOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [KIND/NAME...]",
		Short: "Compare what each server serves with what is declared",
		Long: `Compare what each server serves with what is declared, as a unified diff for each server that differs. As in kubectl diff,
"-" is what is live, and "+" is what is declared. Without names it is about all zones, records and DNSEndpoints of the namespace.
A zone's diff shows whatever differs in it, up to 20 RRsets for each server.

Exit code 0: every server serves what is declared. 1: one does not. 2: trouble; what could not be compared, such as a server
that does not answer, is reported on standard error, and the rest is compared all the same.` + aboutObjects,
		Example: `  # One record on all of its servers
  kubectl lockstep diff arecord/www

  # Everything that differs in a zone
  kubectl lockstep diff dnszone/example-com`,
		ValidArgsFunction: o.completeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.parseArgs(args)
			if err != nil {
				return err
			}
			for _, t := range targets {
				if slices.Contains(subject.FleetKinds, t.kind) {
					return fmt.Errorf("%s has no data of its own: compare its zones", strings.TrimSuffix(t.String(), "/"))
				}
			}
			c, err := o.newClient()
			if err != nil {
				return err
			}
			items, err := c.findTargets(cmd.Context(), o, targets)
			if err != nil {
				return err
			}
			items = slices.DeleteFunc(items, func(s v1alpha1.SyncStatus) bool { return isFleet(s.ObjectRef.Kind) })
			if len(items) == 0 {
				return errors.New(c.nothingFound())
			}
			if len(targets) == 0 {
				dropShownRRsets(items)
			}
			return o.printDiffs(cmd, items)
		},
	}
	o.addSelectionFlags(cmd.Flags())
	return cmd
}

func isFleet(kind string) bool {
	return slices.ContainsFunc(subject.FleetKinds, func(k subject.Kind) bool { return k.Kind == kind })
}

// printDiffs prints what differs and ends with the code that diff(1) would.
func (o *commandOptions) printDiffs(cmd *cobra.Command, items []v1alpha1.SyncStatus) error {
	var result error
	palette, untold := o.newPalette(cmd.OutOrStdout()), skippedReasons{}
	for i := range items {
		d := render.Diff(&items[i], palette)
		fmt.Fprint(cmd.OutOrStdout(), d.Text)
		for _, why := range d.Skipped {
			untold.add(why, items[i].Name)
		}
		if d.Differs {
			result = errNotInSync
		}
	}
	for _, g := range untold {
		fmt.Fprintln(cmd.ErrOrStderr(), g)
		result = errNotCompared
	}
	return result
}

// skippedReasons are what could not be compared. A server that does not answer is reported once, not for each record.
type skippedReasons []skippedObjects

type skippedObjects struct {
	reason  string
	objects []string
}

func (g *skippedReasons) add(why, about string) {
	i := slices.IndexFunc(*g, func(o skippedObjects) bool { return o.reason == why })
	if i < 0 {
		*g = append(*g, skippedObjects{reason: why})
		i = len(*g) - 1
	}
	(*g)[i].objects = append((*g)[i].objects, about)
}

func (g skippedObjects) String() string {
	return fmt.Sprintf("not compared: %s: %s", status.JoinSome(g.objects, status.Few, ", "), g.reason)
}

// dropShownRRsets leaves out of zones' rows the RRsets that others among the items have: they are shown there.
func dropShownRRsets(items []v1alpha1.SyncStatus) {
	type rrset struct{ namespace, name, kind string }
	shown := map[rrset]bool{}
	for _, s := range items {
		if s.ObjectRef.Kind == subject.ZoneKind.Kind {
			continue
		}
		for _, r := range s.RRsets {
			shown[rrset{s.Namespace, r.Name, r.Type}] = true
		}
	}
	for _, s := range items {
		if s.ObjectRef.Kind != subject.ZoneKind.Kind {
			continue
		}
		for i := range s.Servers {
			row := &s.Servers[i]
			before := len(row.Observed)
			row.Observed = slices.DeleteFunc(row.Observed, func(r v1alpha1.RRset) bool { return shown[rrset{s.Namespace, r.Name, r.Type}] })
			if len(row.Observed) == 0 && before > 0 {
				row.State = v1alpha1.StateInSync
			}
			if len(row.Observed) < before {
				row.Records = nil // What is not shown cannot be counted any more.
			}
		}
	}
}
