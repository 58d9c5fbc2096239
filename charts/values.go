package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is a value of the chart, or a group of them.
type value struct {
	name        string
	description string
	// schema of the value, without its description; nil for a group.
	schema map[string]any
	// usual is what the value is if nobody sets it.
	usual any
	// group are the values below a group.
	group []value
}

// values are all values of the chart.
type values struct{ all []value }

func boolean(name string, usual bool, description string) value {
	return value{name: name, description: description, schema: map[string]any{"type": "boolean"}, usual: usual}
}

func plainText(name, usual, description string) value {
	return value{name: name, description: description, schema: map[string]any{"type": "string"}, usual: usual}
}

func list(name string, usual []any, items map[string]any, description string) value {
	return value{name: name, description: description, schema: map[string]any{"type": "array", "items": items}, usual: usual}
}

func free(name string, usual any, description string) value {
	return value{name: name, description: description, schema: map[string]any{"type": "object"}, usual: usual}
}

func group(name, description string, values ...value) value {
	return value{name: name, description: description, group: values}
}

var anyObject = map[string]any{"type": "object"}

// declareValues returns the values of the chart. Defaults that the kustomization has are taken from there.
func declareValues(r release, kustomized map[string]any) *values {
	externalDNS := kustomized["externalDNS"].(map[string]any)
	repositories := kustomized["imagePolicy"].(map[string]any)["repositories"].([]any)
	return &values{[]value{
		group("image", "Image of all components. That of the sidecars of DNS servers has its repository with `-sidecar` after it, and its tag.",
			plainText("repository", r.repository, "Registry and repository."),
			plainText("tag", "", "Tag; empty for the chart's appVersion."),
			value{name: "digest", usual: "", schema: map[string]any{"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}, description: "Digest, `sha256:…`, instead of the tag."},
			value{name: "sidecarDigest", usual: "", schema: map[string]any{"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}, description: "Digest of the sidecar's image, instead of the tag."},
			value{name: "pullPolicy", usual: "IfNotPresent", schema: map[string]any{"enum": []any{"Always", "IfNotPresent", "Never"}}, description: "When nodes pull the image."}),
		list("imagePullSecrets", []any{}, anyObject, "Secrets in the release's namespace to pull images of the components with, as in a pod. DNS servers run in other namespaces, with ServiceAccounts of their own."),
		plainText("bind9Image", "", "Image of named for DNS servers that name none; empty for the fleet manager's default."),
		group("crds", "CustomResourceDefinitions. They are templates, so an upgrade upgrades them.",
			boolean("install", true, "Install and upgrade them. Set false if somebody else does."),
			boolean("keep", true, "Leave them, and with them all zones, records and servers, when the release is uninstalled. **If false, uninstalling deletes every object of their kinds.**")),
		group("highAvailability", "The component `high-availability`.",
			boolean("enabled", false, "Two replicas of each component, spread over nodes, with PodDisruptionBudgets.")),
		group("networkPolicy", "The components `network-policy` and `webhook-network-policy`.",
			boolean("enabled", false, "Close all ports of the components except those that others have to reach."),
			value{name: "controlPlane", usual: "", schema: map[string]any{"type": "string", "pattern": "^([0-9a-fA-F.:]+/[0-9]{1,3})?$"}, description: "Where kube-apiserver's calls come from, in CIDR notation, to close the webhook's port to everybody else; needs `networkPolicy.enabled`."}),
		group("authenticatedWebhook", "The component `authenticated-webhook`.",
			boolean("enabled", false, "The webhook answers kube-apiserver alone.")),
		group("certManager", "The component `cert-manager`.",
			boolean("enabled", false, "cert-manager issues the certificates of the API server and the webhook. It has to be installed.")),
		group("enrolledOnly", "The component `enrolled-only`.",
			boolean("enabled", false, "Servers run only in namespaces that you enroll.")),
		group("imagePolicy", "The component `image-policy`.",
			boolean("enabled", false, "Users choose images of some repositories only."),
			list("repositories", repositories, map[string]any{"type": "string"}, "These repositories; a name with a final slash admits all below it.")),
		group("monitoring", "The component `monitoring`.",
			boolean("enabled", false, "Monitors, alerts and a dashboard for the Prometheus Operator, whose kinds have to exist. A Secret without data is among them, into which Kubernetes puts a token.")),
		group("clusterAPI", "The component `cluster-api`.",
			boolean("enabled", false, "Publish the endpoints of Cluster API's clusters.")),
		group("externalDNS", "The components `external-dns` and `external-dns-gateway`.",
			boolean("enabled", false, "external-dns with Lockstep as its provider."),
			boolean("gateway", false, "Names of HTTPRoutes and GRPCRoutes, too. Gateway API has to be installed; needs `externalDNS.enabled`."),
			plainText("image", externalDNS["image"].(string), "Image of external-dns."),
			list("extraArgs", []any{}, map[string]any{"type": "string"}, "More arguments of external-dns, such as `--source=…`.")),
		group("vantage", "The component `vantage`.",
			boolean("enabled", false, "A vantage in the Kubernetes cluster, which says what clients of the pod network get.")),
		componentValues("controller", "The controller, which programs zones.", kustomized),
		componentValues("fleet", "The fleet manager, which runs servers.", kustomized),
		componentValues("apiserver", "The API server, which answers `kubectl get syncstatus`.", kustomized),
		componentValues("webhook", "The webhook.", kustomized),
	}}
}

func componentValues(name, description string, kustomized map[string]any) value {
	resources := kustomized[name].(map[string]any)["resources"]
	return group(name, description,
		value{name: "replicas", schema: map[string]any{"type": []any{"integer", "null"}, "minimum": 0}, description: "Number of replicas; null for 1, or 2 with `highAvailability.enabled`."},
		free("resources", resources, "Requests and limits of its container."),
		list("extraArgs", []any{}, map[string]any{"type": "string"}, "More arguments; `lockstep "+name+" --help` lists them."),
		free("podAnnotations", map[string]any{}, "Annotations of its pods."),
		free("nodeSelector", map[string]any{}, "Labels of nodes for its pods."),
		list("tolerations", []any{}, anyObject, "Tolerations of its pods."),
		free("affinity", map[string]any{}, "Affinity of its pods."))
}

// yaml returns values.yaml.
func (v *values) yaml() string {
	var b strings.Builder
	b.WriteString("# Written by `make generate-chart`. values.schema.json has the types.\n")
	writeValues(&b, v.all, 0)
	return b.String()
}

func writeValues(b *strings.Builder, all []value, indent int) {
	space := strings.Repeat(" ", indent)
	for _, v := range all {
		fmt.Fprintf(b, "%s# %s\n", space, v.description)
		if v.schema == nil {
			fmt.Fprintf(b, "%s%s:\n", space, v.name)
			writeValues(b, v.group, indent+2)
			continue
		}
		if m, ok := v.usual.(map[string]any); ok && len(m) > 0 {
			fmt.Fprintf(b, "%s%s:\n", space, v.name)
			text, err := yaml.Marshal(m)
			if err != nil {
				panic(err) // It came from YAML.
			}
			for line := range strings.Lines(string(text)) {
				b.WriteString(space + "  " + line)
			}
			continue
		}
		fmt.Fprintf(b, "%s%s: %s\n", space, v.name, marshalJSON(v.usual))
	}
}

// schema returns values.schema.json. A value that there is not is refused: it may be misspelled.
func (v *values) schema() string {
	root := schemaOf(v.all)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Values of the chart lockstep"
	root["properties"].(map[string]any)["global"] = map[string]any{"type": "object", "description": "What a parent chart shares with all of its charts. Not used."}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // There is nothing in it that JSON has not.
	}
	return string(text) + "\n"
}

func schemaOf(all []value) map[string]any {
	properties := map[string]any{}
	for _, v := range all {
		s := map[string]any{}
		if v.schema == nil {
			s = schemaOf(v.group)
		}
		for key, each := range v.schema {
			s[key] = each
		}
		s["description"] = v.description
		if v.schema != nil {
			s["default"] = v.usual
		}
		properties[v.name] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// table returns the values as a table of a document.
func (v *values) table() string {
	var b strings.Builder
	b.WriteString("| value | default | |\n|---|---|---|\n")
	for _, each := range v.all {
		if each.schema != nil {
			writeRow(&b, "", each)
			continue
		}
		if each.name == components[0] {
			b.WriteString(componentRows(v.all))
			break
		}
		for _, below := range each.group {
			writeRow(&b, each.name+".", below)
		}
	}
	return b.String()
}

// componentRows returns the rows of the values that each component has.
func componentRows(all []value) string {
	var b strings.Builder
	of := map[string]value{}
	for _, each := range all {
		of[each.name] = each
	}
	for i, first := range of[components[0]].group {
		if first.name != "resources" {
			writeRow(&b, "`*COMPONENT*.`", first)
			continue
		}
		for _, component := range components {
			writeRow(&b, component+".", of[component].group[i])
		}
	}
	return strings.NewReplacer("``*COMPONENT*.`", "*component*`.", "`lockstep "+components[0]+" --help` lists them", "`lockstep controller --help` and so on list them").Replace(b.String())
}

func writeRow(b *strings.Builder, prefix string, v value) {
	usual := "`" + marshalJSON(v.usual) + "`"
	if v.usual == "" {
		usual = ""
	}
	fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, v.name, usual, v.description)
}

const (
	tableBegin = "<!-- values: written by make generate-chart -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

// writeTable replaces the table in a document.
func writeTable(document string, v *values) error {
	content, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(content), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table of values", document)
	}
	return os.WriteFile(document, []byte(before+tableBegin+"\n"+v.table()+"\n"+tableEnd+after), 0o644)
}
