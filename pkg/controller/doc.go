// Package controller sets up the manager and its reconcilers. Clusters make instances, instances make pods, zones bring the
// data of their objects to the pods: each has a package of its own.
package controller
