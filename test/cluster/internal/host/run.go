package host

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// runCommand runs a command of the machine and returns what it prints. An error holds
// what it complained of.
func runCommand(ctx context.Context, name string, args ...string) (string, error) {
	return runInput(ctx, "", name, args...)
}

func runInput(ctx context.Context, input, name string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running %s: %w: %s",
			strings.Join(append([]string{name}, args...), " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
