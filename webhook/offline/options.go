package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
)

// ErrFindings says that manifests were read and are not good.
var ErrFindings = errors.New("the manifests are not good")

// Options are the flags of "lockstep validate".
type Options struct {
	// Files are files and folders; "-" is standard input.
	Files []string
	// Against are files and folders with the objects as they were before.
	Against []string
	// Namespace is that of objects that name none.
	Namespace string
	// Output is text, json or sarif.
	Output string
	// Strict has warnings count as errors.
	Strict bool
	// Explain is a rule to explain, instead of checking anything.
	Explain string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Namespace: "default", Output: "text"}
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVarP(&o.Files, "filename", "f", o.Files, "file, or folder with all that is below it, or - for standard input; may be repeated")
	fs.StringSliceVar(&o.Against, "against", o.Against, "file or folder with the manifests as they are applied now: what may not change is compared with them; may be repeated")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "namespace of objects that name none")
	fs.StringVarP(&o.Output, "output", "o", o.Output, "how to report: text, json or sarif")
	fs.StringVar(&o.Explain, "explain", o.Explain, "rule to explain, such as the one in brackets after a warning; nothing is checked")
	fs.BoolVar(&o.Strict, "strict", o.Strict, "exit with 1 for warnings too")
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var errs []error
	if _, known := Rules[o.Explain]; o.Explain != "" && !known {
		errs = append(errs, fmt.Errorf("--explain=%q: must be one of %s", o.Explain, strings.Join(slices.Sorted(maps.Keys(Rules)), ", ")))
	}
	if len(o.Files) == 0 && o.Explain == "" {
		errs = append(errs, errors.New("nothing to check: name files or folders with -f"))
	}
	if slices.Contains(o.Against, manifest.Stdin) {
		errs = append(errs, errors.New("--against=-: standard input is for what is to be checked"))
	}
	if formats[o.Output] == nil {
		errs = append(errs, fmt.Errorf("--output=%q: must be one of %s", o.Output, strings.Join(slices.Sorted(maps.Keys(formats)), ", ")))
	}
	return errors.Join(errs...)
}

// Run writes the report to out and one line about it to log. It gives ErrFindings when an object would be refused; any
// other error means that the manifests could not be checked.
func (o *Options) Run(ctx context.Context, in io.Reader, out, log io.Writer) error {
	if o.Explain != "" {
		_, err := io.WriteString(out, explain(o.Explain))
		return err
	}
	objects, faults, err := manifest.Read(in, o.Files...)
	if err != nil {
		return fmt.Errorf("reading the manifests: %w", err)
	}
	before, _, err := manifest.Read(in, o.Against...) // Faults of the past are nobody's now.
	if err != nil {
		return fmt.Errorf("reading the manifests of before: %w", err)
	}
	checker, err := NewChecker()
	if err != nil {
		return err
	}
	findings, checked, err := checker.Check(ctx, objects, before, o.Namespace)
	if err != nil {
		return err
	}
	findings = append(faultFindings(faults), findings...)
	slices.SortStableFunc(findings, compareFindings)
	if err := formats[o.Output](out, findings, checked); err != nil {
		return err
	}
	wrong := 0
	for _, f := range findings {
		if f.Level == Error {
			wrong++
		}
	}
	fmt.Fprintf(log, "objects checked: %d, errors: %d, warnings: %d\n", checked, wrong, len(findings)-wrong)
	if wrong > 0 || (o.Strict && len(findings) > 0) {
		return ErrFindings
	}
	return nil
}
