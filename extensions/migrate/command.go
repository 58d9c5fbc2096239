package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// ErrStepsLeft is returned when not all steps are done: the output has said which.
var ErrStepsLeft = errors.New("steps are left")

// options of the command.
type options struct {
	kubeconfig clientcmd.ClientConfig
	apply      bool
	timeout    time.Duration
}

// NewCommand returns the command "migrate" of a program, which is named in its examples.
func NewCommand(program string, kubeconfig clientcmd.ClientConfig) *cobra.Command {
	o := options{kubeconfig: kubeconfig, timeout: 10 * time.Minute}
	cmd := &cobra.Command{
		Use:   "migrate [--apply]",
		Short: "Take an installation of Bindy over without losing a query",
		Long: `Show what Bindy has left in the cluster, in all namespaces, and which steps make Lockstep take it over. Nothing is changed
without --apply.

With --apply the steps are taken one after the other. The command may be interrupted and run again at any time: it goes on
where it was. Until the former servers are deleted, Bindy comes back with "kubectl scale deployment/bindy --replicas=1", after
Lockstep has been removed.

Exit status: 0 when nothing is left to do, 1 when something is, 2 when it could not be found out or a step failed.`,
		Example: fmt.Sprintf(`  # What is to be done, and what Lockstep does not take over
  %[1]s migrate

  # Do it
  %[1]s migrate --apply`, program),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.newClient()
			if err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
			if err := o.run(cmd.Context(), c, cmd.OutOrStdout()); err != nil && !errors.Is(err, ErrStepsLeft) {
				return fmt.Errorf("migrate: %w", err)
			} else if err != nil {
				return err
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.apply, "apply", false, "Take the steps")
	cmd.Flags().DurationVar(&o.timeout, "wait", o.timeout, "How long to wait until Lockstep's servers are ready")
	return cmd
}

func (o *options) newClient() (client.Client, error) {
	config, err := o.kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config.UserAgent, config.QPS = "kubectl-lockstep", -1
	return client.New(config, client.Options{Scheme: scheme})
}

// run shows what is left to do, or does it.
func (o *options) run(ctx context.Context, c client.Client, out io.Writer) error {
	found, err := takeInventory(ctx, c)
	if err != nil {
		return err
	}
	left := printSteps(out, found.steps(o.timeout))
	for n, text := range found.lost {
		if n == 0 {
			fmt.Fprintln(out, "\nNot taken over:")
		}
		fmt.Fprintln(out, "  "+text)
	}
	switch {
	case left == 0:
		fmt.Fprintln(out, "\nNothing is left to do.")
		return nil
	case !o.apply:
		fmt.Fprintln(out, "\nNothing was changed. To take the steps: migrate --apply")
		return ErrStepsLeft
	}
	fmt.Fprintln(out)
	return o.takeSteps(ctx, c, found, out)
}

// takeSteps takes the steps that are left. After each it looks again: one makes another possible. Former servers that are still needed
// stay, and hold up none of the others.
func (o *options) takeSteps(ctx context.Context, c client.Client, found *inventory, out io.Writer) error {
	for n := range found.steps(o.timeout) {
		next := found.steps(o.timeout)[n]
		if len(next.objects) == 0 {
			continue
		}
		fmt.Fprintf(out, "%d. %s: %s …\n", n+1, next.title, status.JoinSome(next.objects, status.Few, ", "))
		if next.take == nil {
			fmt.Fprintln(out, "   "+byHand)
			return ErrStepsLeft
		}
		err := next.take(ctx, c)
		if waits := (*waitingError)(nil); err == nil || errors.As(err, &waits) {
			found, err = takeInventory(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", n+1, err)
		}
	}
	if len(found.servers) > 0 {
		fmt.Fprintf(out, "%v.\nRun the command again when their instances are ready, or delete these instances.\n", &waitingError{found.waitingServers()})
		return ErrStepsLeft
	}
	fmt.Fprintln(out, "Done. Nothing of Bindy is left but its Secrets <instance>-rndc-key, and its namespace.")
	return nil
}

// printSteps prints the steps as a table, and returns how many are left.
func printSteps(out io.Writer, all []step) (left int) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "STEP\tWHAT\tOBJECTS")
	for n, s := range all {
		objects := "done, or nothing to do"
		if len(s.objects) > 0 {
			left++
			objects = status.JoinSome(s.objects, status.Few, ", ")
		}
		fmt.Fprintf(table, "%d\t%s\t%s\n", n+1, s.title, objects)
	}
	_ = table.Flush()
	return left
}
