// Command kubectl-lockstep is a plugin for kubectl: `kubectl lockstep` shows people and scripts whether every DNS server
// serves what is declared.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/plugin"
)

func main() {
	// What client-go would log comes back as an error, too, and is reported in our words. This must come before anything that logs.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := plugin.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, extensions...)
	stop()
	os.Exit(code)
}
