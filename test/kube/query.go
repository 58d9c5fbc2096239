package kube

import (
	"time"

	"github.com/miekg/dns"
)

// QueryTimeout is how long one question waits for its answer: a resolver asks again then, and so does a test.
const QueryTimeout = 2 * time.Second

// Query asks a server, "IP:port", as a resolver does: again over TCP when the answer is truncated (RFC 1123 section 6.1.3.2), as named's
// are to a network that asks for the same too often. Each of the two may take as long as the timeout.
func Query(server, name string, rrtype uint16, timeout time.Duration) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), rrtype)
	m.RecursionDesired = false
	c := dns.Client{Timeout: timeout}
	reply, _, err := c.Exchange(m, server)
	if err == nil && reply.Truncated {
		c.Net = "tcp"
		reply, _, err = c.Exchange(m, server)
	}
	return reply, err
}
