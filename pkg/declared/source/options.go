package source

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Options are what the desired content of a zone depends on besides the objects themselves.
type Options struct {
	// Servers give their addresses to the name servers in the zone that nobody declares an address for. BIND serves no zone with
	// a name server inside it that has none.
	Servers []Server
	// Owns reports whether an endpoint of a DNSEndpoint with a dnsName inside the zone is this zone's and not another one's
	// (membership decides). Nil takes all.
	Owns func(endpoint metav1.Object, dnsName string) bool
	// MaxRecords is how many records of one name and type the zone's servers take.
	MaxRecords RecordLimit
	// Signers are the signed zones below that the zone delegates to, by name: membership decides which. Where no object declares DS
	// records, a delegation has theirs.
	Signers []Signer
}

// SameServers reports whether the zone's servers, and the signed zones below, say the same about its content.
func (o Options) SameServers(p Options) bool {
	return o.MaxRecords == p.MaxRecords && slices.EqualFunc(o.Servers, p.Servers, Server.Equal) && slices.EqualFunc(o.Signers, p.Signers, Signer.Equal)
}

// RecordLimit is how many records of one name and type servers take. The zero value is v1beta1.DefaultMaxRecordsPerType.
type RecordLimit struct {
	Max int
	// Of is what the servers belong to, which takes the fewest of all that a zone is on; the zero value for none in particular. Fields are
	// where that is configured.
	Of     ObjectKey
	Fields string
}

// Excess says to a reader in a namespace that an RRset would have too many records, of which older declarations have some; "" if it has not.
func (l RecordLimit) Excess(key rrset.Key, records, older int, namespace string) string {
	most := cmp.Or(l.Max, v1beta1.DefaultMaxRecordsPerType)
	if records <= most {
		return ""
	}
	of, so := "the zone's servers take", "; those who run them can raise maxRecordsPerType"
	if l.Of.Namespace == namespace && l.Of.Name != "" {
		of, so = l.Of.String()+" takes", "; raise "+l.Fields
	}
	has := ""
	if older > 0 {
		has = fmt.Sprintf(", %d of them by other declarations", older)
	}
	return fmt.Sprintf("%s would have %d values%s, and %s at most %d of one name and type%s", key, records, has, of, most, so)
}

// Server is where clients reach one of the zone's servers.
type Server struct {
	// Service is the namespace and name of its Service.
	Service string
	Primary bool
	// Addresses of the Service. One that is Exposed, to clients outside of the Kubernetes cluster, may have none yet.
	Addresses []netip.Addr
	Exposed   bool
}

// Equal reports whether both say the same.
func (s Server) Equal(o Server) bool {
	return s.Service == o.Service && s.Primary == o.Primary && s.Exposed == o.Exposed && slices.Equal(s.Addresses, o.Addresses)
}
