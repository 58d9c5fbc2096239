// Command lockstep is the one binary of all components: controller, fleet, apiserver, webhook and bindcar.
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server"

	"github.com/lockstep-dns/lockstep/extensions/zoneimport"
	"github.com/lockstep-dns/lockstep/webhook/offline"
)

func main() {
	ctx := server.SetupSignalContext()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(reportError(err))
	}
}

// reportError prints why the command failed, unless the command has, and returns the exit status.
func reportError(err error) int {
	if !errors.Is(err, offline.ErrFindings) && !errors.Is(err, zoneimport.ErrIncomplete) {
		fmt.Fprintln(os.Stderr, "lockstep:", err)
	}
	var e exitError
	if errors.As(err, &e) {
		return e.code
	}
	return 1
}
