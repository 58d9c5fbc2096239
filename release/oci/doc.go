// Package oci writes container images as archives that containerd, Docker,
// kind and k3s can load. The same files always give the same image: times are
// zero and the order is fixed. It builds nothing and talks to no registry.
package oci
