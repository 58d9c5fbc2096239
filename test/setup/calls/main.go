// Command calls prints each program that the repository's Go code, scripts and Makefiles call, with the place of a call:
//
//	go run ./test/setup/calls test/demo test/cluster
//
// It finds names that are written out. In Go those are arguments of os/exec's functions, and of functions that hand their
// own argument on to them; in the shell, the first words of commands.
package main

import (
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	calls := map[string]string{}
	for _, root := range os.Args[1:] {
		if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (strings.HasPrefix(entry.Name(), "_") || entry.Name() == ".git"):
				return fs.SkipDir
			case entry.IsDir():
				return addGoCalls(calls, path)
			}
			return addScriptCalls(calls, path)
		}); err != nil {
			log.Fatal(err)
		}
	}
	for _, program := range slices.Sorted(maps.Keys(calls)) {
		fmt.Println(program, calls[program])
	}
}
