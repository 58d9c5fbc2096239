package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// What renderings have where the chart has actions.
const (
	namespacePlaceholder = "placeholder-of-namespace"
	imagePlaceholder     = "placeholder/of-image:dev"
	cidrPlaceholder      = "192.0.2.0/28"
)

// kustomization renders overlays of the manifests. It writes nothing to the disk.
type kustomization struct {
	files filesys.FileSystem
	// clusterScoped are kinds of which objects have no namespace. Kustomize gives one to those that it does not know.
	clusterScoped set
}

// loadKustomization reads the manifests in a directory.
func loadKustomization(directory string) (*kustomization, error) {
	k := &kustomization{files: filesys.MakeFsInMemory()}
	err := filepath.WalkDir(directory, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(directory, file)
		if err != nil {
			return err
		}
		return k.files.WriteFile(path.Join("/manifests", filepath.ToSlash(name)), content)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	everything := set{}
	for _, o := range options {
		everything[o.name] = o.name != "enrolled-only" // which takes something away
	}
	objects, err := k.render(overlay{components: everything})
	if err != nil {
		return nil, err
	}
	k.clusterScoped = set{}
	for _, o := range objects {
		if o["metadata"].(map[string]any)["namespace"] == nil {
			k.clusterScoped[fmt.Sprint(o["kind"])] = true
		}
	}
	return k, nil
}

// overlay is what is rendered: the overlay default, with components.
type overlay struct {
	components set
	// namespace and image are those of the installation; empty for those of the overlay default.
	namespace, image string
}

// render returns the objects of an overlay by their ids.
func (k *kustomization) render(o overlay) (map[string]map[string]any, error) {
	const directory = "/manifests/overlays/chart"
	var components, resources []string
	for _, option := range options {
		if !o.components[option.name] {
			continue
		}
		components = append(components, "../../components/"+option.name)
		for _, name := range sortedKeys(option.resources) {
			resources = append(resources, name)
			if err := k.files.WriteFile(path.Join(directory, name), []byte(option.resources[name])); err != nil {
				return nil, err
			}
		}
	}
	file := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\ncomponents: [%s]\n",
		strings.Join(append([]string{"../default"}, resources...), ", "), strings.Join(components, ", "))
	if o.namespace != "" {
		file += "namespace: " + o.namespace + "\ntransformers: [../../references" + map[bool]string{true: ", ../../references/cert-manager"}[o.components["cert-manager"]] + "]\n"
	}
	// The overlay default sets the image of the base, not that of components.
	file += "images: [{name: lockstep, newName: " + cmp.Or(o.image, "lockstep") + ", newTag: dev}]\n" + replacements
	if err := k.files.WriteFile(path.Join(directory, "kustomization.yaml"), []byte(file)); err != nil {
		return nil, err
	}
	build := krusty.MakeDefaultOptions()
	build.LoadRestrictions = types.LoadRestrictionsNone
	rendered, err := krusty.MakeKustomizer(build).Run(k.files, directory)
	if err != nil {
		return nil, fmt.Errorf("rendering the manifests with %v: %w", components, err)
	}
	objects := map[string]map[string]any{}
	for _, r := range rendered.Resources() {
		object, err := r.Map()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.CurId(), err)
		}
		if k.clusterScoped[fmt.Sprint(object["kind"])] {
			delete(object["metadata"].(map[string]any), "namespace")
		}
		objects[identify(object)] = object
	}
	return objects, nil
}

// replacements are those of the overlay default, which has the image in two places.
const replacements = `replacements:
- source: {kind: Deployment, name: lockstep-fleet, fieldPath: "spec.template.spec.containers.[name=fleet].image"}
  targets:
  - select: {kind: Deployment, name: lockstep-fleet}
    fieldPaths: ["spec.template.spec.containers.[name=fleet].env.[name=LOCKSTEP_IMAGE].value"]
`

// identify returns what an object is found by: kind, namespace and name.
func identify(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return strings.Join([]string{fmt.Sprint(object["apiVersion"]), fmt.Sprint(object["kind"]), namespace, fmt.Sprint(metadata["name"])}, "/")
}
