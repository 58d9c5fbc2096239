//go:build !core

package main

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/extensions/zoneimport"
)

func importCommand() *cobra.Command {
	return clusterCommand("reach the cluster of a DNSProvider with", zoneimport.ErrIncomplete, func(kubeconfig clientcmd.ClientConfig) *cobra.Command {
		return zoneimport.NewCommand("lockstep", kubeconfig)
	})
}
