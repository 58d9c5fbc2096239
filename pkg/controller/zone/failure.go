package zone

import (
	"errors"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// terminal tells whether an error stays until somebody changes something: a key, a policy, the zone itself.
func terminal(err error) bool {
	var e interface{ Transient() bool }
	return errors.As(err, &e) && !e.Transient()
}

// remedy says what to do about an error that does not pass by itself, as the end of a sentence that says what it is.
func (p *pass) remedy(q *primary) string {
	var e *wire.Error
	if !terminal(q.err) || !errors.As(q.err, &e) {
		return ""
	}
	instance := p.instanceOf(q.server)
	switch {
	case e.TSIGError != 0 && instance != nil:
		return "; compare Secrets " + instance.Namespace + "/" + named.UpdateKeySecretName(instance) + " and " +
			named.TransferKeySecretName(instance) + " with what rndc tsig-list says in the pod, which loads changed keys within two minutes; they are read again every minute"
	case e.Rcode == dns.RcodeRefused && e.Op == "transfer":
		return "; let the transfer key transfer the zone (allow-transfer)"
	case e.Rcode == dns.RcodeRefused:
		return "; let the update key update the zone (allow-update), and see that the zone is a primary one and not frozen"
	}
	return ""
}
