// Command release makes everything that is delivered of a version, from a clean checkout:
//
//	go run -C release . [-version v0.1.0] [-registry ghcr.io/lockstep-dns] [-platforms linux/amd64,…] [-allow-dirty] [-out DIRECTORY]
//
// The same commit, version of Go and packages of Debian give the same bytes, on any machine and in any folder. It publishes nothing;
// docs/releasing.md says how that is done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	var o options
	flag.StringVar(&o.version, "version", "", "version, such as v0.1.0; the default is the tag at HEAD, or the pseudo-version that Go has for the commit")
	flag.StringVar(&o.registry, "registry", "ghcr.io/lockstep-dns", "where the images will be pushed to; the manifests name them there")
	flag.StringVar(&o.out, "out", "", "folder for the release, in which one with the version's name is made; the default is _output/release")
	flag.StringVar(&o.platforms, "platforms", allPlatforms, "what the plugin is built for; fewer for a try, which has no other use")
	flag.BoolVar(&o.allowDirty, "allow-dirty", false, "make a release for a try of changes that are not committed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // stop only frees what the exit frees as well
	}
}

func run(ctx context.Context, o options) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected arguments: %s", strings.Join(flag.Args(), " "))
	}
	root, err := findRepository()
	if err != nil {
		return err
	}
	r, err := newRelease(ctx, root, o)
	if err != nil {
		return err
	}
	return r.make(ctx)
}

// findRepository finds the project's folder, from the present one up.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "release", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this is not inside the project's repository; call the command from there")
		}
	}
}
