// Package ui is the page of `kubectl lockstep ui`: a local web server that shows a browser zones and servers, and reads
// from the cluster as the user of the kubeconfig. It forwards the reads that the page needs and nothing else, answers one
// browser session only, and never writes. Package plugin calls it.
package ui
