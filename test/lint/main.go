// Command lint is a tool for `go vet -vettool` with the analyses that hold rules of docs/architecture.md.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/lockstep-dns/lockstep/test/lint/lockio"
)

func main() { unitchecker.Main(lockio.Analyzer) }
