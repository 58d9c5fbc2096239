package zoneimport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
)

// NewCommand returns the command "import" of a program, which is named in its examples. kubeconfig leads to the cluster of a
// DNSProvider; nothing is read of it otherwise. Its error is ErrIncomplete when the report has said why.
func NewCommand(program string, kubeconfig clientcmd.ClientConfig) *cobra.Command {
	options := NewOptions()
	options.Kubeconfig = kubeconfig
	cmd := &cobra.Command{
		Use:   "import --zone ZONE (--server ADDRESS[:PORT] [--key-file FILE] | --file ZONEFILE | dnsprovider/NAME)",
		Short: "Write the manifests of a zone that another server has",
		Long: `Write the manifests of a zone that another server has: a DNSZone, and an object for each RRset. The zone is read from a zone
file, or transferred from a server (AXFR). Nothing is changed there, and no cluster is asked.

With dnsprovider/NAME it is transferred from a primary of that DNSProvider, with the provider's key, which is read from its
Secret with your rights. The DNSZone names the provider: the zone stays where it is, and is changed there from now on.

Types without a kind, and names or values that a kind does not take, become DNSEndpoints. What no object can express is
listed on standard error with file and line, as is what had to be changed. What signs the zone (RRSIG, DNSKEY and so on)
is left out. The same zone always gives the same manifests.

Exit status: 0 when the manifests say all that the zone says, 1 when they were written and something is listed, 2 when the
command line is wrong or the zone cannot be read: then nothing was written.`,
		Example: fmt.Sprintf(`  # From a zone file, for the cluster "dns"
  %[1]s import --zone example.com --file /etc/bind/db.example.com --cluster dns -n team-dns > example.com.yaml

  # From a server, with a key that may transfer the zone; one file for each kind
  %[1]s import --zone example.com --server 192.0.2.53 --key-file import.key --cluster dns --output dns/

  # A large zone, and a file that includes others
  %[1]s import --zone example.com --file db.example.com --include-from /var/cache/bind --as endpoints --output dns/

  # From the servers of a DNSProvider, which go on serving the zone
  %[1]s import --zone example.com -n team-dns dnsprovider/corp > example.com.yaml

  # Straight into a cluster
  %[1]s import --zone example.com --server 192.0.2.53 --cluster dns | kubectl apply -n team-dns -f -`, program),
		Args:          cobra.MaximumNArgs(1),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			for _, arg := range args {
				if options.Provider, err = parseProvider(arg); err != nil {
					return fmt.Errorf("import: %w", err)
				}
			}
			if err := options.Validate(); err != nil {
				return errors.New("import: " + strings.ReplaceAll(err.Error(), "\n", "; "))
			}
			return options.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	options.AddFlags(cmd.Flags())
	return cmd
}
