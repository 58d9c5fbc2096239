// Command kubernetes is a single-node Kubernetes in one executable: it runs the
// component that it was called by the name of, so the Kubernetes libraries that
// all of them share are linked once. The cluster command builds it and puts a
// symbolic link for each component beside it.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// components maps the name of each executable to the function that runs it.
var components = map[string]func(){
	"etcd":                    etcd,
	"kube-apiserver":          apiServer,
	"kube-controller-manager": controllerManager,
	"kube-proxy":              proxy,
	"kube-scheduler":          scheduler,
	"kubectl":                 kubectl,
	"kubelet":                 kubelet,
}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := components[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: not the name of a component; link this file to one of %v and call that\n",
			name, slices.Sorted(maps.Keys(components)))
		os.Exit(2)
	}
	run()
}
