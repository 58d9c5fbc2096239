package sidecar

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Servers do not say what they are to anybody who asks; sidecars do, to callers with a certificate.
func TestServersAreAnonymous(t *testing.T) {
	s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{})
	for _, name := range []string{"version.bind.", "hostname.bind.", "id.server.", "authors.bind."} {
		m := new(dns.Msg)
		m.SetQuestion(name, dns.TypeTXT)
		m.Question[0].Qclass = dns.ClassCHAOS
		reply, err := dns.Exchange(m, s.DNS().String())
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Answer) > 0 {
			t.Errorf("%s is answered: %v", name, reply.Answer)
		}
	}
	if readiness, err := s.client.Readiness(testContext(t), s.addr); err != nil || !strings.HasPrefix(readiness.Version, "9.") {
		t.Errorf("the sidecar says %+v, %v", readiness, err)
	}
}
