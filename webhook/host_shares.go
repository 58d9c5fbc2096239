package webhook

import (
	"net"
	"net/http"
	"sync"
)

// hostShares is a resource of limited size that requests share. One address gets only a part of it, so that enough is left for
// kube-apiserver. It is safe for concurrent use.
type hostShares struct {
	limit, perHost int

	mu    sync.Mutex
	total int
	hosts map[string]int
}

func newHostShares(limit, perHost int) *hostShares {
	return &hostShares{limit: limit, perHost: perHost, hosts: map[string]int{}}
}

// take takes so many for a host, or gives them back if there are less than 0. It reports whether there were enough.
func (s *hostShares) take(host string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && (s.total+n > s.limit || s.hosts[host]+n > s.perHost) {
		return false
	}
	s.total += n
	if s.hosts[host] += n; s.hosts[host] == 0 {
		delete(s.hosts, host)
	}
	return true
}

// hostOf is the address that a request comes from, without its port.
func hostOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}
