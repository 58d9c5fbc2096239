package component

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"

	"github.com/lockstep-dns/lockstep/pkg/heap"
)

// Runner is what a command runs.
type Runner interface {
	// AddFlags registers the component's flags with their defaults.
	AddFlags(*pflag.FlagSet)
	// Validate names every flag that is wrong.
	Validate() error
	// Run works until it is done, the context ends, or something fails for good.
	Run(context.Context) error
}

// helpWidth is how wide the help is, in columns.
const helpWidth = 120

// featured is a component with feature gates of its own.
type featured interface {
	AddFeatures(featuregate.MutableFeatureGate) error
}

// NewCommand returns a command that runs a component, with the flags that all of them have in sections of their own.
func NewCommand(name, short string, c Runner) *cobra.Command {
	common, sections := NewOptions(), cliflag.NamedFlagSets{}
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Long:  short + ".",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(c.Validate(), common.Validate()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := common.Apply(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			defer logs.FlushLogs()
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go heap.ReleaseAtRest(ctx)
			return c.Run(ctx)
		},
	}
	if f, ok := c.(featured); ok {
		if err := f.AddFeatures(common.Features); err != nil {
			panic(err) // Two features of one name.
		}
	}
	own := sections.FlagSet(name)
	c.AddFlags(own)
	common.AddFlags(&sections, own)
	for _, section := range sections.Order {
		cmd.Flags().AddFlagSet(sections.FlagSets[section])
	}
	sections.FlagSet("global").BoolP("help", "h", false, "help for "+name)
	cmd.Flags().AddFlagSet(sections.FlagSet("global"))
	cliflag.SetUsageAndHelpFunc(cmd, sections, helpWidth)
	return cmd
}
