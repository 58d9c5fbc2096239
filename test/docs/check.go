package docs

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// minCommands is how many commands of a program the documentation has at least: fewer were not found.
const minCommands = 20

// CheckCommands fails the test if a program does not have a subcommand or a flag that the documentation uses. argsOf returns what follows the
// program's name in a command; not ok for a command of another program.
func CheckCommands(t *testing.T, program func() *cobra.Command, argsOf func(Command) (args []string, ok bool)) {
	t.Helper()
	seen := 0
	for _, d := range Read(t) {
		for _, c := range d.Commands() {
			if args, ok := argsOf(c); ok {
				seen++
				checkCommand(t, program(), c, args)
			}
		}
	}
	if seen < minCommands {
		t.Errorf("only %d commands were found", seen)
	}
}

func checkCommand(t *testing.T, root *cobra.Command, c Command, args []string) {
	t.Helper()
	root.InitDefaultVersionFlag() // cobra adds it when the program runs.
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil && err != pflag.ErrHelp { //nolint:errorlint // as cobra compares it
		t.Errorf("%s:%d: %s: %v", c.Document, c.Line, c, err)
	}
}
