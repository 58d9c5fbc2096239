// Command lockstep is the one binary of all faces: controller, apiserver, webhook and bindcar.
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server"

	"github.com/lockstep-dns/lockstep/webhook/offline"
)

func main() {
	ctx := server.SetupSignalContext()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(tell(err))
	}
}

// tell says why the command failed, unless the command has, and gives the exit status.
func tell(err error) int {
	if !errors.Is(err, offline.ErrFindings) {
		fmt.Fprintln(os.Stderr, "lockstep:", err)
	}
	var e exit
	if errors.As(err, &e) {
		return e.code
	}
	return 1
}
