// Command charts writes the Helm chart in charts/lockstep from the kustomization in manifests, so that there is one truth about what an
// installation is: an object, a field or a right that changes there changes in the chart.
//
// Kustomize renders the overlay default, and renders it again with each component that is an option of the chart. What differs is put
// under the condition of that option (see option and tree). Namespace and image are placeholders in these renderings, which become
// template actions; ../manifests/references knows where the namespace is mere text. What a chart can have and a kustomization has not,
// such as values for resources of pods, is added in customize.go.
//
// Tests beside it compare what Helm renders with what kustomize renders, for all combinations of options, and install the chart.
package main
