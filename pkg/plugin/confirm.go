package plugin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/forecast"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// errNotConfirmed ends confirm when the user says no.
var errNotConfirmed = errors.New("not confirmed")

// confirmation is a run of confirm.
type confirmation struct {
	rest     rest.Interface
	statuses *statusClient
	// zone is its DNSZone as it was when the plan was read.
	zone    *v1beta1.DNSZone
	palette render.Palette
	in      io.Reader
	out     io.Writer
	errOut  io.Writer
}

func confirmCommand(o *commandOptions) *cobra.Command {
	var yes bool
	var plan string
	cmd := &cobra.Command{
		Use:   "confirm ZONE",
		Short: "Show what the guard of a zone holds back, and confirm it",
		Long: `Show what the guard of a zone holds back (spec.guard), RRset by RRset, and confirm it after a question. ZONE is the name of a DNSZone.

What is confirmed is the plan that was held back when it was read, and nothing else: if the zone is to lose anything more or less by then,
the command fails and changes nothing. It sets the annotation ` + v1beta1.ConfirmAnnotation + `, which needs the right to update the zone.

Exit code 0: the plan is confirmed, or nothing is held back. 1: you said no. 2: an error, or another plan is held back.`,
		Example: `  # What is held back? Then a question
  kubectl lockstep confirm example-com

  # In a script, exactly what a status or a person has named
  kubectl lockstep confirm example-com --plan=1f7d0c9be2a45b6d8f3e1c20a9b7d645`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeZone,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseZone(args[0])
			if err != nil {
				return err
			}
			c := confirmation{palette: o.newPalette(cmd.OutOrStdout()), in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr()}
			if c.statuses, err = o.newClient(); err != nil {
				return err
			}
			if c.rest, err = o.newRESTClient(v1beta1.SchemeGroupVersion, v1beta1.AddToScheme); err != nil {
				return err
			}
			if c.zone, err = c.getZone(cmd.Context(), t.name); err != nil {
				return err
			}
			return c.run(cmd.Context(), plan, yes || plan != "")
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "Do not ask")
	cmd.Flags().StringVar(&plan, "plan", "", "Confirm this plan, which status.heldPlan of the zone names, and no other, without a question")
	return cmd
}

func (c *confirmation) getZone(ctx context.Context, name string) (*v1beta1.DNSZone, error) {
	zone := &v1beta1.DNSZone{}
	err := c.rest.Get().Namespace(c.statuses.namespace).Resource(subject.ZoneKind.Resource).Name(name).Do(ctx).Into(zone)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no DNSZone %s in namespace %s", name, c.statuses.namespace)
	}
	return zone, err
}

// object names the zone.
func (c *confirmation) object() forecast.Object {
	return forecast.Object{Kind: subject.ZoneKind.Kind, Namespace: c.zone.Namespace, Name: c.zone.Name}
}

// run confirms the plan of the zone: the one that the user has named, if any.
func (c *confirmation) run(ctx context.Context, named string, withoutQuestion bool) error {
	key, plan := c.object(), c.zone.Status.HeldPlan
	switch {
	case named != "" && named != plan:
		return c.otherPlan(named, plan)
	case plan == "":
		fmt.Fprintf(c.out, "the guard of %s holds nothing back\n", key)
		return nil
	}
	if err := c.printPlan(ctx); err != nil {
		return err
	}
	if c.zone.Annotations[v1beta1.ConfirmAnnotation] == plan {
		fmt.Fprintf(c.out, "plan %s of %s is confirmed already\n", plan, key)
		return nil
	}
	fmt.Fprintf(c.out, "the guard of %s holds this back: plan %s\n", key, plan)
	if !withoutQuestion && !c.ask("Confirm it? Type yes: ") {
		fmt.Fprintln(c.out, "nothing is confirmed")
		return errNotConfirmed
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.annotate(ctx, plan) }); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "plan %s of %s is confirmed\n", plan, key)
	return nil
}

// otherPlan says that a plan is not the one that is held back.
func (c *confirmation) otherPlan(named, held string) error {
	if held == "" {
		return fmt.Errorf("nothing is confirmed: the guard of %s holds nothing back, and not plan %s", c.object(), named)
	}
	return fmt.Errorf("nothing is confirmed: the guard of %s holds back plan %s, and not %s", c.object(), held, named)
}

// ask asks the user, and reports whether the answer is yes.
func (c *confirmation) ask(question string) bool {
	fmt.Fprint(c.out, question)
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(c.out) // The input has ended without a line.
	}
	return strings.EqualFold(strings.TrimSpace(answer), "yes")
}

// annotate confirms a plan for the zone as it was read. If it has changed since, it is read again, and the conflict is returned; unless another
// plan is held back now.
func (c *confirmation) annotate(ctx context.Context, plan string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.zone.ResourceVersion, "annotations": map[string]string{v1beta1.ConfirmAnnotation: plan},
	}})
	if err != nil {
		return err
	}
	err = c.rest.Patch(types.MergePatchType).Namespace(c.zone.Namespace).Resource(subject.ZoneKind.Resource).Name(c.zone.Name).Body(patch).Do(ctx).Error()
	if !apierrors.IsConflict(err) {
		return err
	}
	again, failed := c.getZone(ctx, c.zone.Name)
	switch {
	case failed != nil:
		return failed
	case again.UID != c.zone.UID || again.Status.HeldPlan != plan:
		return c.otherPlan(plan, again.Status.HeldPlan)
	}
	c.zone = again
	return err
}

// printPlan prints what the plan of the zone makes of each RRset.
func (c *confirmation) printPlan(ctx context.Context) error {
	statuses, err := c.heldStatuses(ctx)
	if err != nil {
		fmt.Fprintf(c.errOut, "note: what is held back is not known in detail: %v\n", err)
	}
	name := declaration.DNSName(c.zone)
	changes := heldChanges(statuses, name)
	if len(changes) == 0 {
		if ready := meta.FindStatusCondition(c.zone.Status.Conditions, status.Ready); ready != nil {
			fmt.Fprintln(c.out, ready.Message)
		}
		return nil
	}
	fmt.Fprint(c.out, render.Forecast([]forecast.Zone{{ZoneName: name + ".", Object: c.object(), Changes: changes}}, c.palette))
	if more := countHeld(statuses, c.object()) - len(changes); more > 0 {
		fmt.Fprintf(c.out, "and %d more that no object declares which you may read\n", more)
	}
	return nil
}

// heldStatuses returns the SyncStatus of the zone, and those of the objects in it that you may read.
func (c *confirmation) heldStatuses(ctx context.Context) ([]v1alpha1.SyncStatus, error) {
	zone, err := c.statuses.getStatus(ctx, target{subject.ZoneKind, c.zone.Name})
	if err != nil {
		return nil, err
	}
	query := statusQuery{fields: fields.Set{v1alpha1.FieldZone: declaration.DNSName(c.zone)}}
	all := *c.statuses
	all.namespace = ""
	items, err := all.listStatuses(ctx, query)
	if apierrors.IsForbidden(err) {
		items, err = c.statuses.listStatuses(ctx, query)
	}
	items = slices.DeleteFunc(items, func(s v1alpha1.SyncStatus) bool { return s.ObjectRef.Kind == subject.ZoneKind.Kind })
	return append(items, *zone), err
}

// heldChanges compares what servers hold of a zone because of its guard with what is declared, by all SyncStatuses that show some of it.
func heldChanges(statuses []v1alpha1.SyncStatus, zone string) []forecast.Change {
	var changes []forecast.Change
	for i := range statuses {
		s := &statuses[i]
		for _, row := range s.Servers {
			if row.State == v1alpha1.StateHeld && (row.Zone == "" || row.Zone == zone) {
				changes = addHeldOn(changes, row, s)
			}
		}
	}
	slices.SortFunc(changes, func(a, b forecast.Change) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Type, b.Type))
	})
	return changes
}

// addHeldOn adds what one server holds of an object.
func addHeldOn(changes []forecast.Change, row v1alpha1.ServerStatus, s *v1alpha1.SyncStatus) []forecast.Change {
	for _, have := range row.Observed {
		want := slices.IndexFunc(s.RRsets, func(r v1alpha1.RRset) bool { return r.Name == have.Name && r.Type == have.Type })
		if want >= 0 && have.Type != "SOA" { // which changes with every other RRset
			changes = addHeld(changes, have, s.RRsets[want], s.ObjectRef)
		}
	}
	return changes
}

// addHeld adds an RRset that a server has, and what is to become of it. Several servers and objects may show the same.
func addHeld(changes []forecast.Change, have, want v1alpha1.RRset, by v1alpha1.ObjectReference) []forecast.Change {
	at := slices.IndexFunc(changes, func(c forecast.Change) bool { return c.Name == have.Name && c.Type == have.Type })
	if at < 0 {
		change := forecast.Change{Action: forecast.Changes, Name: have.Name, Type: have.Type, Before: dataOf(have), After: dataOf(want)}
		switch {
		case change.Before == nil && change.After == nil:
			return changes
		case change.Before == nil:
			change.Action = forecast.Appears
		case change.After == nil:
			change.Action = forecast.Vanishes
		}
		changes, at = append(changes, change), len(changes)
	}
	object := forecast.Object{Kind: by.Kind, Namespace: by.Namespace, Name: by.Name}
	if c := &changes[at]; by.Kind != subject.ZoneKind.Kind && !slices.Contains(c.Objects, object) {
		c.Objects = append(c.Objects, object)
	}
	return changes
}

// dataOf returns the data of an RRset, nil if there is none.
func dataOf(set v1alpha1.RRset) *forecast.Data {
	if len(set.Rdata) == 0 && set.Omitted == 0 {
		return nil
	}
	d := &forecast.Data{Values: set.Rdata}
	if set.Omitted > 0 {
		d.Values = append(slices.Clone(set.Rdata), fmt.Sprintf("and %d values more", set.Omitted))
	}
	if set.TTL != nil {
		d.TTL = uint32(*set.TTL) //nolint:gosec // A TTL has 31 bits.
	}
	return d
}

// countHeld returns how many RRsets of a zone are not as declared on the server that has the most of them, of those that are held back.
func countHeld(statuses []v1alpha1.SyncStatus, zone forecast.Object) (most int) {
	for i := range statuses {
		if ref := statuses[i].ObjectRef; ref.Kind != zone.Kind || ref.Namespace != zone.Namespace || ref.Name != zone.Name {
			continue
		}
		for _, row := range statuses[i].Servers {
			if row.State == v1alpha1.StateHeld && row.Records != nil {
				most = max(most, int(row.Records.OutOfSync))
			}
		}
	}
	return most
}
