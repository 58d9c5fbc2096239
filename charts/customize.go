package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// components are the Deployments with values of their own, by these names.
var components = []string{"controller", "fleet", "apiserver", "webhook"}

// customize adds what the chart has and the kustomization has not, and returns the values that have their defaults from the latter.
func customize(objects map[string]*object) (defaults map[string]any, err error) {
	defaults = map[string]any{}
	for id, o := range objects {
		switch kind, name := o.kind(), o.name(); {
		case kind == "CustomResourceDefinition":
			o.keepDefinition()
		case kind == "Deployment":
			o.pullImages()
			if component := strings.TrimPrefix(name, "lockstep-"); slices.Contains(components, component) {
				defaults[component] = map[string]any{"resources": o.customizeComponent(component)}
			} else if name == "lockstep-external-dns" {
				defaults["externalDNS"] = map[string]any{"image": o.customizeExternalDNS()}
			}
		case kind == "ValidatingAdmissionPolicy" && name == "lockstep-images":
			repositories, err := o.customizeRepositories()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			defaults["imagePolicy"] = map[string]any{"repositories": repositories}
		}
	}
	return defaults, nil
}

// keepDefinition has a CustomResourceDefinition be installed, and stay when the release goes, as the values say.
func (o *object) keepDefinition() {
	o.when = append(o.when, literal{option: ".Values.crds.install"})
	annotations := o.at("metadata").at("annotations")
	annotations.insert(&entry{"helm.sh/resource-policy", condition{{option: ".Values.crds.keep"}}, newNode("keep")})
}

// customizeComponent has a Deployment follow the values of its component, and returns its resources.
func (o *object) customizeComponent(component string) (resources any) {
	values := ".Values." + component
	spec := o.at("spec")
	replicas := &writer{}
	for _, e := range spec.take("replicas") {
		replicas.conditional(e.when, func() { replicas.entry(e, 0) })
	}
	spec.insert(&entry{value: &text{fmt.Sprintf("{{- if kindIs \"invalid\" %s.replicas }}\n%s{{- else }}\nreplicas: {{ %s.replicas }}\n{{- end }}", values, replicas, values), true}})

	pod := spec.at("template")
	addLines(pod.at("metadata"), "annotations", values+".podAnnotations")
	addLines(pod.at("spec"), "nodeSelector", values+".nodeSelector")
	addLines(pod.at("spec"), "tolerations", values+".tolerations")
	addLines(pod.at("spec"), "affinity", values+".affinity")

	container := pod.at("spec").first("containers")
	args := container.list("args")
	if component == "fleet" {
		args.items = append(args.items, &item{value: &text{"{{- with include \"lockstep.sidecarImage\" . }}\n- {{ printf \"--bindcar-image=%s\" . | quote }}\n{{- end }}", true}})
		args.items = append(args.items, &item{value: &text{"{{- with .Values.bind9Image }}\n- {{ printf \"--bind9-image=%s\" . | quote }}\n{{- end }}", true}})
	}
	args.items = append(args.items, &item{value: &text{fmt.Sprintf("{{- range %s.extraArgs }}\n- {{ . | quote }}\n{{- end }}", values), true}})
	taken := container.take("resources")
	container.insert(&entry{value: &text{"resources:\n{{- toYaml " + values + ".resources | nindent INDENT_2 }}", true}})
	return evaluate(taken[0].value, nil)
}

// addLines adds an entry that is there if its value is not empty.
func addLines(m *mapping, key, value string) {
	m.insert(&entry{value: &text{fmt.Sprintf("{{- with %s }}\n%s:\n{{- toYaml . | nindent INDENT_2 }}\n{{- end }}", value, key), true}})
}

// pullImages has the containers that run Lockstep's image pull it as the values say.
func (o *object) pullImages() {
	pod := o.at("spec").at("template").at("spec")
	addLines(pod, "imagePullSecrets", ".Values.imagePullSecrets")
	for _, key := range []string{"initContainers", "containers"} {
		if !pod.has(key, nil) {
			continue
		}
		for _, each := range pod.list(key).items {
			container := each.value.(*mapping)
			if evaluate(container.value("image"), nil) == any(imagePlaceholder) {
				container.set("imagePullPolicy", &text{value: "{{ .Values.image.pullPolicy }}"})
			}
		}
	}
}

// customizeExternalDNS has external-dns run the image that the values say, and returns the usual one.
func (o *object) customizeExternalDNS() (image any) {
	container := o.at("spec").at("template").at("spec").first("containers")
	image = evaluate(container.value("image"), nil)
	container.set("image", &text{value: "{{ .Values.externalDNS.image | quote }}"})
	args := container.list("args")
	args.items = append(args.items, &item{value: &text{"{{- range .Values.externalDNS.extraArgs }}\n- {{ . | quote }}\n{{- end }}", true}})
	return image
}

// customizeRepositories has the policy for images permit those that the values say, and returns the usual ones.
func (o *object) customizeRepositories() (repositories []any, err error) {
	variable := o.at("spec").first("variables")
	expression, _ := evaluate(variable.value("expression"), nil).(string)
	if err := json.Unmarshal([]byte(expression), &repositories); err != nil {
		return nil, fmt.Errorf("the first variable is no list of repositories: %w", err)
	}
	variable.set("expression", &text{value: `{{ .Values.imagePolicy.repositories | toJson | replace "\",\"" "\", \"" | quote }}`})
	return repositories, nil
}

// at returns the mapping of a key. It makes an empty one if there is none.
func (m *mapping) at(key string) *mapping {
	for _, e := range m.entries {
		if inner, ok := e.value.(*mapping); ok && e.key == key {
			return inner
		}
	}
	inner := &mapping{}
	m.insert(&entry{key: key, value: inner})
	return inner
}

// list returns the sequence of a key, which there is.
func (m *mapping) list(key string) *sequence { return m.value(key).(*sequence) }

// first returns the first item of the sequence of a key, which is a mapping.
func (m *mapping) first(key string) *mapping { return m.list(key).items[0].value.(*mapping) }

// value returns the value of a key, which there is.
func (m *mapping) value(key string) node {
	return m.entries[slices.IndexFunc(m.entries, func(e *entry) bool { return e.key == key })].value
}

// set replaces the value of a key.
func (m *mapping) set(key string, value node) {
	m.entries[slices.IndexFunc(m.entries, func(e *entry) bool { return e.key == key })].value = value
}

// take removes the entries of a key and returns them.
func (m *mapping) take(key string) (taken []*entry) {
	m.entries = slices.DeleteFunc(m.entries, func(e *entry) bool {
		if e.key == key {
			taken = append(taken, e)
		}
		return e.key == key
	})
	return taken
}
