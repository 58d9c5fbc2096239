package rfc2136

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// guilty tells whether a reply may be due to what a single RRset of the message holds.
func guilty(err error) bool {
	var e *wire.Error
	if errors.Is(err, ErrUnknown) || errors.Is(err, ErrConflict) || !errors.As(err, &e) || e.TSIGError != 0 {
		return false
	}
	switch e.Rcode {
	case dns.RcodeRefused, dns.RcodeServerFailure, dns.RcodeFormatError, dns.RcodeNotZone, dns.RcodeNotImplemented,
		dns.RcodeYXDomain, dns.RcodeYXRrset, dns.RcodeNameError:
		return true
	}
	return false
}

// refusal is the error for one RRset that the server refused while it takes others. A DNS reply gives no more reason
// than its rcode; what usually is behind it is added, as the user has nothing else to go by.
func refusal(k rrset.Key, err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("%s %s is not accepted by the server%s: %w", k.Name, dns.Type(k.Type), usualCause(k.Type, e.Rcode), err)
}

func usualCause(rrtype uint16, rcode int) string {
	const (
		noAddress = " (usual cause: %s in the zone has no address record)"
		hostName  = " (usual causes: the name is no host name, as underscores are not permitted in those; or it is the last address of the zone's name server)"
		tooMany   = " (usual cause: more than 100 records at one name and type, or more than 64 KiB)"
	)
	switch {
	case rcode == dns.RcodeServerFailure:
		return tooMany
	case rcode != dns.RcodeRefused:
		return ""
	}
	switch rrtype {
	case dns.TypeNS:
		return fmt.Sprintf(noAddress, "a name server")
	case dns.TypeMX:
		return fmt.Sprintf(noAddress, "a mail server")
	case dns.TypeA, dns.TypeAAAA:
		return hostName
	}
	return ""
}
