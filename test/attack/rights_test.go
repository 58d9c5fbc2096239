package attack

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// The tenant of every attack here can do what an honest one does, and nothing elsewhere: otherwise a refusal would prove nothing.
func TestAttack00TenantIsHonestlyServed(t *testing.T) {
	kube.Isolated(t)
	n, other := newTenant(t, "honest"), newTenant(t, "other")
	n.apply(bind9Cluster("dns") + dnsZone("main", "corp", "clusterRef: dns") + aRecord("www", "main", "www", "192.0.2.1"))
	n.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	waitServed(t, n.client, n.namespace, "www.corp", dns.TypeA, "192.0.2.1")
	if out, err := other.try("", "get", "arecords", "--namespace", n.namespace); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("another tenant may read records: %v: %s", err, out)
	}
}
