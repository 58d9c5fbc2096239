// Package krew writes the manifest by which krew, kubectl's plugin manager, installs the plugin.
package krew

import (
	"bytes"
	"text/template"
)

// Platform is an archive of the plugin.
type Platform struct {
	OS, Arch string
	URI      string
	SHA256   string // of the archive, in hexadecimal digits
	Bin      string // the plugin's file in it
}

var manifest = template.Must(template.New("").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: lockstep
spec:
  version: {{.Version}}
  homepage: {{.Homepage}}
  shortDescription: Does every DNS server serve what I declared?
  description: |
    Shows zones, records and DNS servers of Lockstep as a tree, waits until a change is served everywhere, compares what is
    served with what is declared, and checks the installation. It needs Lockstep in the cluster.
  platforms:
{{- range .Platforms}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{.URI}}
    sha256: "{{.SHA256}}"
    bin: {{.Bin}}
{{- end}}
`))

// Manifest returns the manifest of the version.
func Manifest(version, homepage string, platforms []Platform) ([]byte, error) {
	var out bytes.Buffer
	err := manifest.Execute(&out, map[string]any{"Version": version, "Homepage": homepage, "Platforms": platforms})
	return out.Bytes(), err
}
