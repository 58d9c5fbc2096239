package observe

import "net/netip"

// Kept counts the zones and servers about which anything is kept; 0 when nothing is.
func (o *Observer) Kept() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(len(o.zones), len(o.servers))
}

// Charged returns how many bytes of memory are accounted for.
func (o *Observer) Charged() int64 { return o.memory.Used() }

// Waiting returns how many questions to a server wait for their turn.
func (o *Observer) Waiting(addr netip.AddrPort) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.rates[addr]; r != nil {
		return r.turns.countWaiting()
	}
	return 0
}
