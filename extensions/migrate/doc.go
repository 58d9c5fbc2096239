// Package migrate is the command that takes an installation of Bindy over. It finds what Bindy has left in a Kubernetes cluster, which steps
// lead to servers of Lockstep without a query that gets no answer, and takes them, each only if it is not done yet.
package migrate
