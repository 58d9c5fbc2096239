package plugin

import (
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

// commandOptions are common to all commands.
type commandOptions struct {
	loading   *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// allNamespaces is --all-namespaces.
	allNamespaces bool
	selector      string
	color         colorMode
}

// colorMode is the value of --color.
type colorMode string

// Set implements pflag.Value.
func (m *colorMode) Set(value string) error {
	switch value {
	case "auto", "always", "never":
		*m = colorMode(value)
		return nil
	}
	return errors.New("it is one of auto, always and never")
}

// String implements pflag.Value.
func (m *colorMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *colorMode) Type() string { return "string" }

func newOptions() *commandOptions {
	return &commandOptions{loading: clientcmd.NewDefaultClientConfigLoadingRules(), color: "auto"}
}

// shownFlags are those of kubectl's connection flags that --help shows. Few need the others.
var shownFlags = []string{clientcmd.FlagContext, clientcmd.FlagNamespace, clientcmd.FlagImpersonate, clientcmd.FlagTimeout}

// addFlags adds the flags of all commands. It takes the names of kubectl's.
func (o *commandOptions) addFlags(flags *pflag.FlagSet) {
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.Timeout.Description = "How long one request may take, for example 10s; 0 is without end"
	clientcmd.BindOverrideFlags(&o.overrides, flags, names)
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags, f.Name) })
	flags.StringVar(&o.loading.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use")
	flags.Var(&o.color, "color", "auto: colors on a terminal, unless NO_COLOR is set; always; never")
}

// addNamespacesFlag is for commands that can look into all namespaces.
func (o *commandOptions) addNamespacesFlag(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look into all namespaces")
}

// addSelectionFlags is for commands about all objects that there are, or some.
func (o *commandOptions) addSelectionFlags(flags *pflag.FlagSet) {
	o.addNamespacesFlag(flags)
	flags.StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels, as for kubectl get")
}

// validateTargets names the flag that is wrong.
func (o *commandOptions) validateTargets(targets []target) error {
	for _, t := range targets {
		switch {
		case t.name == "":
		case o.allNamespaces:
			return errors.New("--all-namespaces goes without names: a name belongs to an object in one namespace")
		case o.selector != "":
			return errors.New("--selector goes without names")
		}
	}
	return nil
}

// newPalette decides on colors for what is written to out.
func (o *commandOptions) newPalette(out io.Writer) render.Palette {
	switch o.color {
	case "always":
		return render.Palette{On: true}
	case "never":
		return render.Palette{}
	}
	// https://no-color.org
	return render.Palette{On: terminalOf(out) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// terminalOf is the terminal that out writes to, nil if it is something else.
func terminalOf(out io.Writer) *os.File {
	if safe, ok := out.(*render.SafeWriter); ok {
		out = safe.Out
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}
