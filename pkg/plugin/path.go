package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

const (
	// pathInterval is how often the SyncStatus is requested until all paths have been asked.
	pathInterval = 250 * time.Millisecond
	// pathAge is how much older than the first answer those of paths may be: none is asked twice in a second.
	pathAge = time.Second
)

func pathCommand(o *commandOptions) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "path ZONE",
		Short: "Show what clients of a zone get, on each way to its name servers and from each vantage",
		Long: `Show what clients of a zone get who ask its name servers without a key: for each address that is known and published, over UDP and TCP, from the API
server and from each vantage, which server answered, with which serial, and how long that took. ZONE is the name of a DNSZone.

A row of the API server says what is seen from inside of the Kubernetes cluster. Clients may be elsewhere.

Exit code 0: every path of clients that is known leads to what the servers have. 1: one does not, or cannot be seen. 2: an error.`,
		Example:           `  kubectl lockstep path example-com`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeZone,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return fmt.Errorf("--timeout=%s: it cannot be below 0", timeout)
			}
			t, err := parseZone(args[0])
			if err != nil {
				return err
			}
			c, err := o.newClient()
			if err != nil {
				return err
			}
			s, err := c.awaitPaths(cmd.Context(), t, timeout)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprint(out, render.Paths(s, o.newPalette(out)))
			if !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionAnswered) {
				return errNotInSync
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "How long to wait for answers on all paths")
	return cmd
}

// parseZone reads the name of a zone, also as KIND/NAME and kind.name.
func parseZone(arg string) (target, error) {
	t := target{subject.ZoneKind, arg}
	if _, _, isName := subject.ParseName(arg); isName || strings.Contains(arg, "/") {
		var err error
		if t, err = parseTarget(arg); err != nil {
			return t, err
		}
	}
	if t.kind != subject.ZoneKind || t.name == "" {
		return t, fmt.Errorf("%s is no zone: name a DNSZone", arg)
	}
	return t, nil
}

// awaitPaths requests the SyncStatus of a zone until each path has been asked since about the first answer, or the time is over.
func (c *statusClient) awaitPaths(ctx context.Context, t target, timeout time.Duration) (*v1alpha1.SyncStatus, error) {
	s, err := c.getStatus(ctx, t)
	if err != nil {
		return nil, err
	}
	var since time.Time // by the clock of the API server
	for _, row := range s.Servers {
		if row.ObservedAt != nil && row.ObservedAt.Add(-pathAge).After(since) {
			since = row.ObservedAt.Add(-pathAge)
		}
	}
	over := time.After(timeout)
	for !isAskedSince(s.Paths, since) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over:
			return s, nil
		case <-time.After(pathInterval):
		}
		if s, err = c.getStatus(ctx, t); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// isAskedSince reports whether all paths were asked since a time, and the servers after those that answered with something newer. Services are
// asked as often as they need.
func isAskedSince(paths []v1alpha1.Path, since time.Time) bool {
	for _, p := range paths {
		if p.ObservedAt == nil || p.State == v1alpha1.StateUnknown && p.Serial != nil || p.ObservedAt.Time.Before(since) && (p.Type != v1alpha1.PathService || p.Vantage != "") {
			return false
		}
	}
	return true
}
