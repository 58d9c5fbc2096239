package unbound

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Client asks a resolver for a name and for names that do not exist, one after the other, until its test ends.
type Client struct {
	at netip.AddrPort
	// name has an address; there is none below absent.
	name, absent string
	began        time.Time

	mu     sync.Mutex
	counts Counts
	losses []string
}

// Counts are numbers of answers: all that were as they should be, and those of them that the resolver has proven.
type Counts struct{ Answers, Proven int }

// Unproven are the answers that the resolver has not proven.
func (c Counts) Unproven() int { return c.Answers - c.Proven }

// askInterval is how often a client asks: with TTLs of two seconds, each answer of the resolver is validated anew within two.
const askInterval = 200 * time.Millisecond

// Ask starts a client of the resolver at an address. It does not count what it loses before the first answer.
func Ask(t testing.TB, at netip.AddrPort, name, absent string) *Client {
	t.Helper()
	c := &Client{at: at, name: name, absent: absent, began: time.Now()}
	ticker, done := time.NewTicker(askInterval), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-ticker.C:
				c.ask(n)
			}
		}
	})
	t.Cleanup(func() {
		ticker.Stop()
		close(done)
		running.Wait()
	})
	return c
}

func (c *Client) ask(n int) {
	name, rcode := c.name, dns.RcodeSuccess
	if n%2 == 1 {
		name, rcode = fmt.Sprintf("none%d.%s", n, c.absent), dns.RcodeNameError
	}
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	m.SetEdns0(4096, true)
	reply, _, err := (&dns.Client{UDPSize: 4096, Timeout: 5 * time.Second}).Exchange(m, c.at.String())
	if err != nil { // Resolvers' clients, too, ask again.
		reply, _, err = (&dns.Client{Net: "tcp", Timeout: 20 * time.Second}).Exchange(m, c.at.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.counts.Answers == 0: // It does not listen yet.
	case err != nil:
		c.losses = append(c.losses, fmt.Sprintf("%s: %v", c.Age(), err))
	case reply.Rcode != rcode:
		c.losses = append(c.losses, fmt.Sprintf("%s: %s for %s: %s", c.Age(), dns.RcodeToString[reply.Rcode], name, reply.IsEdns0()))
	default:
		c.counts.Answers++
		if reply.AuthenticatedData {
			c.counts.Proven++
		}
	}
}

// Counts returns how many answers the client has got.
func (c *Client) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Losses returns what the client got instead of an answer, each with the time since it began.
func (c *Client) Losses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.losses)
}

// Age returns how long the client has asked.
func (c *Client) Age() time.Duration { return time.Since(c.began).Round(time.Millisecond) }
