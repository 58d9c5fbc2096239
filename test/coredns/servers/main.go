// Package servers runs real etcd and CoreDNS servers for tests: child processes on free loopback ports, stopped when the test ends.
// The programs are in the test's own executable.
package servers

import (
	"fmt"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind" // plugins register themselves
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/etcd"
	_ "github.com/coredns/coredns/plugin/log"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

// Main runs the program that the first argument names, with the other arguments, and does not return.
func Main() {
	if len(os.Args) < 2 || !runProgram(os.Args[1], os.Args[1:]) {
		fmt.Fprintln(os.Stderr, "the first argument must be etcd or coredns")
		os.Exit(2)
	}
	os.Exit(0)
}

func runProgram(name string, args []string) bool {
	switch name {
	case "etcd":
		etcdmain.Main(args)
	case "coredns":
		os.Args = args
		dnsserver.Directives = []string{"bind", "errors", "log", "cache", "etcd"}
		coremain.Run()
	default:
		return false
	}
	return true
}
