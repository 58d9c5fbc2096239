package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// errUntold ends diff when some servers could not be compared.
var errUntold = errors.New("not everything could be compared")

func diffCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "diff [KIND/NAME...]",
		Short: "Compare what each server serves with what is declared",
		Long: `Compare what each server serves with what is declared, as a unified diff for each server that differs. As in kubectl diff,
"-" is what is live, and "+" is what is declared. Without names it is about all zones, records and DNSEndpoints of the namespace.
A zone's diff shows whatever differs in it, up to 20 RRsets for each server.

Exit code 0: every server serves what is declared. 1: one does not. 2: trouble; what could not be compared, such as a server
that does not answer, is told on standard error, and the rest is compared all the same.` + aboutObjects,
		Example: `  # One record on all of its servers
  kubectl lockstep diff arecord/www

  # Everything that differs in a zone
  kubectl lockstep diff dnszone/example-com`,
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.targets(args)
			if err != nil {
				return err
			}
			for _, t := range targets {
				if slices.Contains(syncstatus.FleetKinds, t.kind) {
					return fmt.Errorf("%s has no data of its own: compare its zones", strings.TrimSuffix(t.String(), "/"))
				}
			}
			c, err := o.connect()
			if err != nil {
				return err
			}
			items, err := c.find(cmd.Context(), o, targets)
			if err != nil {
				return err
			}
			items = slices.DeleteFunc(items, func(s v1alpha1.SyncStatus) bool { return isFleet(s.ObjectRef.Kind) })
			if len(items) == 0 {
				return errors.New(c.nothing())
			}
			if len(targets) == 0 {
				once(items)
			}
			return o.compare(cmd, items)
		},
	}
}

func isFleet(kind string) bool {
	return slices.ContainsFunc(syncstatus.FleetKinds, func(k syncstatus.Kind) bool { return k.Kind == kind })
}

// compare prints what differs and ends with the code that diff(1) would.
func (o *options) compare(cmd *cobra.Command, items []v1alpha1.SyncStatus) error {
	var result error
	palette, untold := o.palette(cmd.OutOrStdout()), gaps{}
	for i := range items {
		d := render.Diff(&items[i], palette)
		fmt.Fprint(cmd.OutOrStdout(), d.Text)
		for _, why := range d.Untold {
			untold.add(why, items[i].Name)
		}
		if d.Differs {
			result = errNot
		}
	}
	for _, g := range untold {
		fmt.Fprintln(cmd.ErrOrStderr(), g)
		result = errUntold
	}
	return result
}

// gaps are what could not be compared. A server that does not answer is told once, not for each record.
type gaps []gap

type gap struct {
	why   string
	about []string
}

func (g *gaps) add(why, about string) {
	i := slices.IndexFunc(*g, func(o gap) bool { return o.why == why })
	if i < 0 {
		*g = append(*g, gap{why: why})
		i = len(*g) - 1
	}
	(*g)[i].about = append((*g)[i].about, about)
}

func (g gap) String() string {
	switch more := len(g.about) - 3; {
	case more > 0:
		return fmt.Sprintf("not compared: %s and %d more: %s", strings.Join(g.about[:3], ", "), more, g.why)
	default:
		return fmt.Sprintf("not compared: %s: %s", strings.Join(g.about, ", "), g.why)
	}
}

// once leaves out of zones' rows the RRsets that others among the items have: they are shown there.
func once(items []v1alpha1.SyncStatus) {
	type rrset struct{ namespace, name, kind string }
	shown := map[rrset]bool{}
	for _, s := range items {
		if s.ObjectRef.Kind == syncstatus.ZoneKind.Kind {
			continue
		}
		for _, r := range s.RRsets {
			shown[rrset{s.Namespace, r.Name, r.Type}] = true
		}
	}
	for _, s := range items {
		if s.ObjectRef.Kind != syncstatus.ZoneKind.Kind {
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
