package plugin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/doctor"
	"github.com/lockstep-dns/lockstep/pkg/doctor/survey"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

// systemNamespace is where the manifests install Lockstep.
const systemNamespace = "lockstep-system"

// errUnhealthy ends doctor with exitNotInSync. It is not an error, and has been reported already.
var errUnhealthy = errors.New("not everything is well")

func doctorCommand(o *commandOptions) *cobra.Command {
	system, output := systemNamespace, ""
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, and say what to do",
		Long: `Check the installation: components, certificates, webhooks, the SyncStatus API, servers, keys, and what objects report. Each check says in
one line what it found and, if that is bad, in another one what to do. Nothing is changed: one record is created with dryRun,
to see whether it passes admission.

It covers the objects of all namespaces, or of the one that -n names. It reads with your rights: what you may not read is skipped.
Secrets are read to check certificates and keys, and never shown.

Exit code 0: no warning and no failure. 1: there are some. 2: it could not be checked.`,
		Example: `  # What is wrong?
  kubectl lockstep doctor

  # The installation, and the objects of one namespace, for a script
  kubectl lockstep doctor -n team-dns -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output=%s: it is json, or nothing", output)
			}
			s, err := o.newSurvey(system)
			if err != nil {
				return err
			}
			facts, err := s.Read(cmd.Context())
			if err != nil {
				return err
			}
			return o.printReport(cmd.OutOrStdout(), doctor.Judge(facts), output)
		},
	}
	o.addNamespacesFlag(cmd.Flags())
	cmd.Flags().StringVar(&system, "system-namespace", system, "The namespace that Lockstep runs in")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for scripts")
	return cmd
}

// newSurvey reads the installation; of objects, those of all namespaces unless the user has named one.
func (o *commandOptions) newSurvey(system string) (*survey.Survey, error) {
	deferred := o.kubeconfig()
	config, err := deferred.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	tryIn, _, err := deferred.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	only := o.overrides.Context.Namespace
	if o.allNamespaces {
		only = ""
	}
	if tryIn == system || tryIn == metav1.NamespaceSystem {
		tryIn = metav1.NamespaceDefault // Webhooks do not review what is in these.
	}
	return survey.New(config, survey.Options{System: system, Namespace: only, TryIn: cmp.Or(tryIn, metav1.NamespaceDefault)})
}

// printReport prints a report for people or for scripts, and returns what the exit code follows from.
func (o *commandOptions) printReport(out io.Writer, report doctor.Report, output string) error {
	if report.Blind() {
		return errors.New("you may read nothing of the installation: the role view would do for a part of it")
	}
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else {
		p := o.newPalette(out)
		fmt.Fprint(out, render.Findings(report, p))
		fmt.Fprintln(out, render.FindingCounts(report, p))
	}
	if !report.Healthy() {
		return errUnhealthy
	}
	return nil
}
