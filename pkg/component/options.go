// Package component has what every component of Lockstep has in common with those of Kubernetes: the flags of logs, metrics and feature
// gates, and the version at /version. Each command has one Options; components themselves just log, count and ask their gate.
package component

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics"
)

// Options are the flags that every component has.
type Options struct {
	Logging *logs.Options
	Metrics *metrics.Options
	// Features has the gates of logging; a component adds its own before AddFlags.
	Features featuregate.MutableVersionedFeatureGate
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	o := &Options{Logging: logs.NewOptions(), Metrics: metrics.NewOptions(), Features: featuregate.NewFeatureGate()}
	if err := logsapi.AddFeatureGates(o.Features); err != nil {
		panic(err) // A new gate has no features that theirs could collide with.
	}
	return o
}

// AddFlags registers the flags in sections of their own. A component whose own flags have --feature-gates keeps those.
func (o *Options) AddFlags(sections *cliflag.NamedFlagSets, own *pflag.FlagSet) {
	logsapi.AddFlags(o.Logging, sections.FlagSet("logs"))
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Metrics.AddFlags(all)
	all.VisitAll(func(f *pflag.Flag) {
		if f.Name != "show-hidden-metrics-for-version" { // It is for versions of Kubernetes.
			sections.FlagSet("metrics").AddFlag(f)
		}
	})
	if own.Lookup("feature-gates") == nil {
		o.Features.AddFlag(sections.FlagSet("features"))
	}
}

// Problems collects what is wrong with flags, for errors.Join.
type Problems []error

// Check adds a problem, as fmt.Errorf would make it, unless all is well.
func (p *Problems) Check(isWell bool, format string, args ...any) {
	if !isWell {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// AddAll adds what is wrong with the value of a flag, as functions of apimachinery's package validation say it.
func (p *Problems) AddAll(flag, value string, problems []string) {
	for _, problem := range problems {
		*p = append(*p, fmt.Errorf("%s=%q: %s", flag, value, problem))
	}
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	errs := o.Metrics.Validate()
	for _, problem := range logsapi.Validate(o.Logging, o.Features, nil) {
		if problem.Field == "format" {
			problem.Field = "--logging-format"
		}
		errs = append(errs, problem)
	}
	return errors.Join(append(errs, o.Features.Validate()...)...)
}

// Apply makes logs and metrics of the process follow the flags. A process does it once, before the component runs.
func (o *Options) Apply() error {
	if err := logsapi.ValidateAndApply(o.Logging, o.Features); err != nil {
		return fmt.Errorf("setting up logging: %w", err)
	}
	if m := o.Metrics; len(m.AllowListMapping) > 0 || m.AllowListMappingManifest != "" {
		m.Apply()
	} else { // Apply would log an error.
		metrics.SetDisabledMetrics(m.DisabledMetrics)
	}
	return RegisterMetrics()
}
