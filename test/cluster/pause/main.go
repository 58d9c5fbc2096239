// Command pause is the process that holds a pod's namespaces open. It waits
// to be told to stop and, as the first process of a pid namespace that
// containers may share, collects the processes that end there.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for reaped := 1; reaped > 0; {
			reaped, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}
