package validate

import (
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
)

// concern orders what a zone's servers have in common, the most serious last: what needs somebody comes after what is only not known.
var concern = map[dnssec.Security]int{dnssec.Secure: 1, dnssec.Insecure: 2, dnssec.Unknown: 3, dnssec.Expiring: 4, dnssec.Bogus: 5}

// Count counts the zones that somebody has asked about lately, by the most serious verdict about any of their servers. first is when the
// first of their signatures expires that were looked at; zero if there is none.
func (v *Validator) Count(now time.Time) (zones map[dnssec.Security]int, first time.Time) {
	zones = map[dnssec.Security]int{dnssec.Secure: 0, dnssec.Insecure: 0, dnssec.Unknown: 0, dnssec.Expiring: 0, dnssec.Bogus: 0}
	at := limitsOf(v.Clock(now))
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.zones {
		if now.Sub(m.used) > idleAge || len(m.zone.Servers) == 0 {
			continue
		}
		most := dnssec.Secure
		for i, s := range m.zone.Servers {
			verdict := m.result.Servers[i].Verdict
			if scanned := v.scans[scanKey{m.zone.Name, s.Peer}]; scanned != nil && m.result.Servers[i].keys != nil {
				verdict = worst(verdict, m.result.Servers[i].soften(scanned.first.verdict(at)))
			}
			if first = firstTime(first, verdict.Expires); concern[verdict.Security] > concern[most] {
				most = verdict.Security
			}
		}
		zones[most]++
	}
	return zones, first
}
