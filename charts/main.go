package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	var r release
	manifests := flag.String("manifests", "../manifests", "`directory` of the kustomization")
	out := flag.String("out", "lockstep", "`directory` to write the chart into; what is there is replaced")
	document := flag.String("document", "", "`file` in which to replace the table of values; empty for none")
	flag.StringVar(&r.version, "version", "0.0.0-dev", "version of the chart")
	flag.StringVar(&r.appVersion, "app-version", "dev", "version of Lockstep, which is the image's tag")
	flag.StringVar(&r.repository, "image", "lockstep", "`repository` of the image")
	flag.Parse()
	if err := run(*manifests, *out, *document, r); err != nil {
		fmt.Fprintln(os.Stderr, "writing the chart:", err)
		os.Exit(1)
	}
}

func run(manifests, out, document string, r release) error {
	values, err := writeChart(manifests, out, r)
	if err != nil || document == "" {
		return err
	}
	return writeTable(document, values)
}
