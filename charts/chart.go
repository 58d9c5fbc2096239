package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// object is one object of the installation, with what depends on options.
type object struct {
	*mapping
	when condition
}

func (o *object) kind() string { return fmt.Sprint(evaluate(o.value("kind"), nil)) }
func (o *object) name() string { return fmt.Sprint(evaluate(o.at("metadata").value("name"), nil)) }

// file returns the template that an object is in: that of its component, or that of its kind.
func (o *object) file() string {
	kind := strings.ToLower(o.kind())
	if kind == "customresourcedefinition" {
		return "crds/" + o.name() + ".yaml"
	}
	labels := evaluate(o.at("metadata").at("labels"), nil).(map[string]any)
	if component, ok := labels["app.kubernetes.io/component"]; ok {
		return fmt.Sprint(component) + ".yaml"
	}
	return strings.TrimSuffix(kind, "y") + map[bool]string{true: "ies.yaml", false: "s.yaml"}[strings.HasSuffix(kind, "y")]
}

// merge returns the objects of all options, by their ids, with conditions.
func merge(k *kustomization) (map[string]*object, error) {
	none, err := k.renderForChart(nil)
	if err != nil {
		return nil, err
	}
	objects := map[string]*object{}
	for id, o := range none {
		objects[id] = &object{mapping: newNode(o).(*mapping)}
	}
	for _, o := range options {
		before := set{}.with(o.needs...)
		steps := []set{before}
		for _, other := range o.meets {
			steps = append(steps, before.with(other))
		}
		for _, before := range steps {
			if err := mergeChange(k, objects, change{before, before.with(o.name), o.name}); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

func mergeChange(k *kustomization, objects map[string]*object, c change) error {
	rendered, err := k.renderForChart(c.after)
	if err != nil {
		return err
	}
	for id, o := range objects {
		if _, ok := rendered[id]; !ok && o.when.holds(c.after) {
			o.when = o.when.and(literal{c.option, true})
		}
	}
	for id, value := range rendered {
		o, ok := objects[id]
		if !ok {
			objects[id] = &object{newNode(value).(*mapping), c.after.allOn()}
		} else if !c.apply(o.mapping, value, o.when) {
			return fmt.Errorf("%s is empty with %s", id, c.option)
		}
	}
	return nil
}

// renderForChart renders with placeholders. The namespace is the release's, and made before it is.
func (k *kustomization) renderForChart(on set) (map[string]map[string]any, error) {
	image, _, _ := strings.Cut(imagePlaceholder, ":")
	rendered, err := k.render(overlay{components: on, namespace: namespacePlaceholder, image: image})
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(rendered, func(_ string, o map[string]any) bool { return o["kind"] == "Namespace" })
	return rendered, nil
}

// release is what a chart says about itself.
type release struct {
	version, appVersion string
	// repository of the image, without a tag, which is appVersion.
	repository string
}

// writeChart writes the chart into a directory, whose content it replaces.
func writeChart(manifests, directory string, r release) (*values, error) {
	k, err := loadKustomization(manifests)
	if err != nil {
		return nil, err
	}
	objects, err := merge(k)
	if err != nil {
		return nil, err
	}
	defaults, err := customize(objects)
	if err != nil {
		return nil, err
	}
	values := declareValues(r, defaults)
	files := map[string]string{
		"Chart.yaml":             fmt.Sprintf(chartFile, r.version, r.appVersion),
		"values.yaml":            values.yaml(),
		"values.schema.json":     values.schema(),
		".helmignore":            "",
		"templates/NOTES.txt":    notes,
		"templates/_helpers.tpl": helpers,
	}
	for _, o := range slices.SortedFunc(maps.Values(objects), compareObjects) {
		files["templates/"+o.file()] += writeDocument(o.mapping, o.when)
	}
	if err := os.RemoveAll(directory); err != nil {
		return nil, err
	}
	for name, content := range files {
		if strings.HasPrefix(name, "templates/") && strings.HasSuffix(name, ".yaml") {
			content = "{{- /* Written by `make generate-chart` from the manifests. Change those instead. */}}\n" + content
		}
		file := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// compareObjects orders objects by kind, so that accounts come before what uses them, and name.
func compareObjects(a, b *object) int {
	first := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service", "Deployment"}
	rank := func(o *object) int {
		if i := slices.Index(first, o.kind()); i >= 0 {
			return i
		}
		return len(first)
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a.kind(), b.kind()), cmp.Compare(a.name(), b.name()))
}

const chartFile = `apiVersion: v2
name: lockstep
description: Authoritative DNS on Kubernetes, with every server provably in sync
type: application
version: %s
appVersion: %q
kubeVersion: ">=1.33.0-0"
home: https://github.com/lockstep-dns/lockstep
sources:
- https://github.com/lockstep-dns/lockstep
keywords: [dns, bind, gitops]
`

const helpers = `{{- define "lockstep.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* Empty if the fleet manager finds it by the tag of its own image. */}}
{{- define "lockstep.sidecarImage" -}}
{{- if .Values.image.sidecarDigest -}}
{{ .Values.image.repository }}-sidecar@{{ .Values.image.sidecarDigest }}
{{- else if .Values.image.digest -}}
{{ .Values.image.repository }}-sidecar:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
`

const notes = `Lockstep runs in namespace {{ .Release.Namespace }}. Declare a cluster of DNS servers and a zone:

  https://github.com/lockstep-dns/lockstep/blob/main/docs/guides/getting-started.md

and see what every server answers: kubectl get syncstatus -A
{{- if .Values.crds.keep }}

When you uninstall this release, the CustomResourceDefinitions and all zones and records stay, and servers go on answering.
{{- end }}
`
