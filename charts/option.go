package main

import (
	"slices"
	"strings"
)

// option is a component of the kustomization that a value of the chart turns on.
type option struct {
	// name of the component.
	name string
	// condition is the template's expression that is true if the option is on.
	condition string
	// needs are options without which this one does nothing.
	needs []string
	// meets are options of which this one changes objects, if both are on.
	meets []string
	// resources are files that the overlay needs beside the component.
	resources map[string]string
}

// options in the order in which kustomize has to apply them.
var options = []option{
	{name: "high-availability", condition: ".Values.highAvailability.enabled"},
	{name: "network-policy", condition: ".Values.networkPolicy.enabled"},
	{
		name: "webhook-network-policy", condition: ".Values.networkPolicy.controlPlane", needs: []string{"network-policy"},
		resources: map[string]string{"control-plane.yaml": controlPlane},
	},
	{name: "authenticated-webhook", condition: ".Values.authenticatedWebhook.enabled"},
	{name: "cert-manager", condition: ".Values.certManager.enabled", meets: []string{"authenticated-webhook"}},
	{name: "enrolled-only", condition: ".Values.enrolledOnly.enabled"},
	{name: "image-policy", condition: ".Values.imagePolicy.enabled"},
	{name: "monitoring", condition: ".Values.monitoring.enabled"},
	{name: "cluster-api", condition: ".Values.clusterAPI.enabled"},
	{name: "external-dns", condition: ".Values.externalDNS.enabled"},
	{name: "external-dns-gateway", condition: ".Values.externalDNS.gateway", needs: []string{"external-dns"}},
	{name: "vantage", condition: ".Values.vantage.enabled", meets: []string{"cert-manager"}},
}

// controlPlane is what the component webhook-network-policy wants in an overlay.
const controlPlane = `apiVersion: v1
kind: ConfigMap
metadata:
  name: control-plane
  annotations: {config.kubernetes.io/local-config: "true"}
data: {cidr: ` + cidrPlaceholder + `}
`

// optionNamed returns an option. There is one of that name.
func optionNamed(name string) option {
	return options[slices.IndexFunc(options, func(o option) bool { return o.name == name })]
}

// literal is one option being on, or off.
type literal struct {
	// option is the name of an option, or the expression of a value that stands for no component.
	option string
	off    bool
}

// condition is true if all of its literals are. The empty one is always true.
type condition []literal

// holds reports whether the condition is true while some options are on.
func (c condition) holds(on set) bool {
	for _, l := range c {
		if on[l.option] == l.off {
			return false
		}
	}
	return true
}

// and returns the condition with another literal.
func (c condition) and(l literal) condition {
	if slices.Contains(c, l) {
		return c
	}
	return append(slices.Clone(c), l)
}

// without returns the condition without the literals of another one, which is known to be true.
func (c condition) without(known condition) condition {
	return slices.DeleteFunc(slices.Clone(c), func(l literal) bool { return slices.Contains(known, l) })
}

// expression returns the condition as a template has it, without the braces.
func (c condition) expression() string {
	var terms []string
	for _, l := range c {
		term := l.option
		if !strings.HasPrefix(term, ".") {
			term = optionNamed(l.option).condition
		}
		if l.off {
			term = "(not " + term + ")"
		}
		terms = append(terms, term)
	}
	if len(terms) == 1 {
		return strings.TrimSuffix(strings.TrimPrefix(terms[0], "("), ")")
	}
	return "and " + strings.Join(terms, " ")
}

// set holds names of options.
type set map[string]bool

// with returns the set with more names.
func (s set) with(names ...string) set {
	all := set{}
	for name := range s {
		all[name] = true
	}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// allOn is true if all options of the set are on.
func (s set) allOn() (c condition) {
	for _, o := range options {
		if s[o.name] {
			c = append(c, literal{option: o.name})
		}
	}
	return c
}
