package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/webhook/offline"
)

// exitError is an error with the code that the process ends with.
type exitError struct {
	code int
	err  error
	// printed is true if the command has said what is wrong.
	printed bool
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

func validateCommand() *cobra.Command {
	options := offline.NewOptions()
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|- [FILE|DIR...]",
		Short: "Check manifests as admission would, without a cluster",
		Long: `Check manifests as admission would, without a cluster: each object by the schema and the rules of its kind, and all
of them against each other, as if they were applied in this order to an empty cluster. Each finding is reported with file,
line, object and field. Files are YAML or JSON with any number of documents; folders are taken with all below them. Objects
of other kinds are passed over. Kustomizations are built first:

  kubectl kustomize overlays/production | lockstep validate -f -

Exit status: 0 when every object would be stored, 1 when one would be refused or a file is not YAML, 2 when the command
line is wrong or a file cannot be read.`,
		Example: `  lockstep validate -f manifests/
  lockstep validate --strict -n team-dns zone.yaml records.yaml
  lockstep validate -f dns/ -o sarif > findings.sarif
  lockstep validate --explain=quotes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Files = append(options.Files, args...)
			if err := options.Validate(); err != nil {
				return exitError{code: 2, err: fmt.Errorf("validate: %w", err)}
			}
			err := options.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			switch {
			case err == nil:
				return nil
			case errors.Is(err, offline.ErrFindings):
				return exitError{code: 1, err: err, printed: true}
			}
			return exitError{code: 2, err: err}
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return exitError{code: 2, err: fmt.Errorf("validate: %w", err)}
	})
	options.AddFlags(cmd.Flags())
	return cmd
}
