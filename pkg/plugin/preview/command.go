// Package preview is "kubectl lockstep plan": which answers change if manifests were applied. It reads the objects of the cluster, has
// kube-apiserver say with dryRun what it would store, and leaves the comparison to package forecast. It changes nothing.
package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/forecast"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

// ErrChanges is returned when answers would change: the output has said which.
var ErrChanges = errors.New("answers would change")

// errRefused ends a plan that could not be made in whole.
var errRefused = errors.New("not everything would be stored: the plan is without it")

// Report is what a plan says.
type Report struct {
	// Zones are those in which answers change.
	Zones []forecast.Zone `json:"zones"`
	// Unselected are the records of which no zone would take anything.
	Unselected []forecast.Object `json:"unselected"`
	// Refused are the objects that would not be stored or deleted: they stay as they are.
	Refused []Finding `json:"refused"`
	// Warnings are what kube-apiserver and admission warn of, about each object beside what the cluster has now.
	Warnings []Finding `json:"warnings"`
	// Remarks say what the plan does not take into account.
	Remarks []string `json:"remarks"`
}

// Finding is what is said about an object, which is from no file if it would be deleted.
type Finding struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Message   string `json:"message"`
}

// text is a line for people; level is error or warning.
func (f Finding) text(level string) string {
	object := objectKey{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}
	if f.File == "" {
		return manifest.Printable(fmt.Sprintf("%s: deleting %s: %s", level, object, f.Message))
	}
	return manifest.Printable(fmt.Sprintf("%s:%d: %s: %s: %s", f.File, f.Line, level, object, f.Message))
}

// options of the command.
type options struct {
	kubeconfig clientcmd.ClientConfig
	// palette decides on colors for what is written to an output.
	palette         func(io.Writer) render.Palette
	files           []string
	prune, output   string
	systemNamespace string
}

// NewCommand returns the command "plan" of a program, which is named in its examples. palette decides on colors for an output.
func NewCommand(program string, kubeconfig clientcmd.ClientConfig, palette func(io.Writer) render.Palette) *cobra.Command {
	o := options{kubeconfig: kubeconfig, palette: palette, systemNamespace: "lockstep-system"}
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR|- [FILE|DIR...]",
		Short: "Show which answers would change if manifests were applied",
		Long: `Show which answers of DNS servers would appear, change or vanish if manifests were applied, RRset by RRset, with the objects that
declare them. Nothing is changed: kube-apiserver is asked with dryRun what it would store, so refusals of admission are shown as well.

Both sides are what is declared, now and then. What servers hold in addition, and what they serve at the moment, "diff" shows.
With --prune, objects with these labels that the files do not have are taken to be deleted, as a GitOps tool or kubectl apply
--prune does, in the namespaces that the files name and in yours. Objects are read with your rights: what you may not read is reported, and not taken into account.

Exit code 0: no answer changes. 1: some do. 2: an error, or an object would be refused; the plan is without it then.`,
		Example: fmt.Sprintf(`  # What does this change?
  %[1]s plan -f dns/

  # With what Argo CD would delete
  %[1]s plan -f dns/ --prune=app.kubernetes.io/instance=dns

  # A kustomization, for a script
  kubectl kustomize overlays/production | %[1]s plan -f - -o json`, program),
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "File, or folder with all that is below it, or - for standard input; may be repeated")
	cmd.Flags().StringVar(&o.prune, "prune", "", "Label selector of the objects that would be deleted if the files do not have them")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json for scripts")
	cmd.Flags().StringVar(&o.systemNamespace, "system-namespace", o.systemNamespace, "The namespace that Lockstep runs in")
	return cmd
}

func (o *options) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	switch {
	case len(o.files) == 0:
		return errors.New("nothing to plan: name files or folders with -f")
	case o.output != "" && o.output != "json":
		return fmt.Errorf("--output=%s: it is json, or nothing", o.output)
	}
	selector, err := labels.Parse(o.prune)
	if err != nil {
		return fmt.Errorf("--prune: %w", err)
	}
	objects, faults, err := manifest.Read(in, o.files...)
	if err != nil {
		return err
	}
	var errs []error
	for _, fault := range faults {
		errs = append(errs, fmt.Errorf("%s:%d: %s", fault.File, fault.Line, manifest.Printable(fault.Message)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c, err := o.newCluster()
	if err != nil {
		return err
	}
	report, err := o.plan(ctx, c, objects, selector)
	if err != nil {
		return err
	}
	return o.print(report, out, errOut)
}

func (o *options) newCluster() (*cluster, error) {
	config, err := o.kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, _, err := o.kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &cluster{namespace: namespace}
	config.UserAgent, config.QPS, config.WarningHandler = "kubectl-lockstep", -1, c
	c.client, err = client.New(config, client.Options{Scheme: scheme})
	return c, err
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Namespace{}, &corev1.NamespaceList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme, errors.Join(v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// plan finds what would change. Objects of other kinds are passed over, but not those that were meant to be of ours.
func (o *options) plan(ctx context.Context, c *cluster, objects []manifest.Object, prune labels.Selector) (Report, error) {
	var ofNamespaces []manifest.Object
	objects = slices.DeleteFunc(objects, func(object manifest.Object) bool {
		problem := c.problemOf(object)
		if problem == nil && object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind(namespaceKind) {
			ofNamespaces = append(ofNamespaces, object)
			return true
		}
		if problem != nil {
			c.refuse(object.File, object.Line(""), keyOf(&object), problem)
		}
		return problem != nil || !c.client.Scheme().Recognizes(object.GroupVersionKind())
	})
	kept, namespaces := map[objectKey]bool{}, map[string]bool{c.namespace: true}
	for _, object := range objects {
		if clusterScoped[object.GetKind()] {
			object.SetNamespace("")
		} else if object.GetNamespace() == "" {
			object.SetNamespace(c.namespace)
		}
		delete(object.Object, "status") // An apply does not take it.
		kept[keyOf(&object)] = true
		namespaces[object.GetNamespace()] = true
	}
	delete(namespaces, "")
	if err := c.read(ctx, slices.Sorted(maps.Keys(namespaces))); err != nil {
		return Report{}, err
	}
	for _, object := range objects {
		if err := c.apply(ctx, object); err != nil {
			return Report{}, err
		}
	}
	if o.prune != "" {
		if err := c.prune(ctx, prune, kept, namespaces); err != nil {
			return Report{}, err
		}
	}
	if err := c.planNamespaces(ctx, ofNamespaces); err != nil {
		return Report{}, err
	}
	before, after := slices.Collect(maps.Values(c.before)), slices.Collect(maps.Values(c.after))
	zones, unselected := forecast.Compare(before, after, o.systemNamespace)
	return Report{
		Zones: append([]forecast.Zone{}, zones...), Unselected: append([]forecast.Object{}, unselected...),
		Refused: append([]Finding{}, c.refused...), Warnings: append([]Finding{}, c.warnings...), Remarks: append(c.remarkUnasked(), c.remarks...),
	}, nil
}

func (o *options) print(report Report, out, errOut io.Writer) error {
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else {
		fmt.Fprint(out, render.Forecast(report.Zones, o.palette(out)))
		for _, object := range report.Unselected {
			fmt.Fprintln(out, manifest.Printable(object.String()+" would not be published: no DNSZone selects its labels"))
		}
		for _, remark := range report.Remarks {
			fmt.Fprintln(errOut, manifest.Printable("note: "+remark))
		}
		for _, warning := range report.Warnings {
			fmt.Fprintln(errOut, warning.text("warning"))
		}
		for _, refusal := range report.Refused {
			fmt.Fprintln(errOut, refusal.text("error"))
		}
	}
	switch {
	case len(report.Refused) > 0:
		return errRefused
	case slices.ContainsFunc(report.Zones, func(z forecast.Zone) bool { return len(z.Changes) > 0 }):
		return ErrChanges
	}
	return nil
}
