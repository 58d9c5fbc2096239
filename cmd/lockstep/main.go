// Command lockstep is the one binary of all components: controller, fleet, apiserver, webhook and bindcar.
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server"
)

func main() {
	ctx := server.SetupSignalContext()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(reportError(err))
	}
}

// reportError prints why the command failed, unless the command has, and returns the exit status.
func reportError(err error) int {
	var e exitError
	isExit := errors.As(err, &e)
	if !isExit || !e.printed {
		fmt.Fprintln(os.Stderr, "lockstep:", err)
	}
	if isExit {
		return e.code
	}
	return 1
}
