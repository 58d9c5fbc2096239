// Command lockstep is the one binary of all faces: controller, apiserver, webhook and bindcar.
package main

import (
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server"
)

func main() {
	ctx := server.SetupSignalContext()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lockstep:", err)
		os.Exit(1)
	}
}
