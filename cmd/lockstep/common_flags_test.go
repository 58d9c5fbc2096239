package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// components are the subcommands that run a component.
var components = [][]string{{"controller"}, {"fleet"}, {"apiserver"}, {"webhook"}, {"bindcar"}, {"bindcar", "init"}, {"externaldns"}, {"vantage"}}

// Every component has the same flags of logs, metrics and features, in sections of their own below its own flags.
func TestCommonFlags(t *testing.T) {
	for _, words := range components {
		name := words[len(words)-1]
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newCommand()
			cmd.SetOut(&out)
			cmd.SetArgs(append(slices.Clone(words), "--help"))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			help := out.String()
			at := 0
			sections := []string{strings.ToUpper(name[:1]) + name[1:] + " flags:", "Logs flags:", "--logging-format", "-v, --v", "--vmodule", "Metrics flags:", "--disabled-metrics"}
			if name != "apiserver" { // Kubernetes' own block has its gates.
				sections = append(sections, "Features flags:", "--feature-gates")
			} else if !strings.Contains(help, "--feature-gates") {
				t.Error("no --feature-gates")
			}
			for _, want := range append(sections, "Global flags:") {
				found := strings.Index(help[at:], want)
				if found < 0 {
					t.Fatalf("%s is missing, or not where it belongs, in\n%s", want, help)
				}
				at += found
			}
			found, rest, err := newCommand().Find(append(slices.Clone(words), "-v=4", "--logging-format=json", "--vmodule=informers=6", "--disabled-metrics=x"))
			if err != nil {
				t.Fatal(err)
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Error(err)
			}
		})
	}
}

// A flag that is wrong ends a command with one line that names it, before anything runs.
func TestWrongCommonFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "lockstep-system")
	for _, words := range components {
		for _, flag := range []string{"-v=loud", "--logging-format=xml", "--vmodule=x", "--disabled-metrics", "--feature-gates=Nonsense=true"} {
			if words[0] == "apiserver" && strings.HasPrefix(flag, "--feature-gates") {
				continue // It is Kubernetes' own block that says so, when it finds its cluster.
			}
			err := executeWith(t, newCommand(), append(slices.Clone(words), flag))
			name, _, _ := strings.Cut(flag, "=")
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: %v, want one line that names the flag", strings.Join(words, " "), flag, err)
			}
		}
	}
}

// A gate opens what is off by default, and only the controller has one of its own.
func TestFeatureGates(t *testing.T) {
	help := func(component string) string {
		var out bytes.Buffer
		cmd := newCommand()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{component, "--help"})
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if text := help("controller"); !strings.Contains(text, "ClusterAPI=true|false (BETA - default=false)") {
		t.Error("the controller's help does not list ClusterAPI:\n", text)
	}
	if strings.Contains(help("fleet"), "ClusterAPI") {
		t.Error("the fleet manager has a gate ClusterAPI")
	}
}

func executeWith(t *testing.T, cmd *cobra.Command, args []string) error {
	t.Helper()
	var discarded bytes.Buffer
	cmd.SetOut(&discarded)
	cmd.SetErr(&discarded)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}
