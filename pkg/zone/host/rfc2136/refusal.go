package rfc2136

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// mayBlameRRset reports whether a reply may be due to the data of a single RRset.
func mayBlameRRset(err error) bool {
	var e *wire.Error
	if errors.Is(err, host.ErrUnknown) || errors.Is(err, host.ErrConflict) || !errors.As(err, &e) || e.TSIGError != 0 {
		return false
	}
	switch e.Rcode {
	case dns.RcodeRefused, dns.RcodeServerFailure, dns.RcodeFormatError, dns.RcodeNotZone, dns.RcodeNotImplemented,
		dns.RcodeYXDomain, dns.RcodeYXRrset, dns.RcodeNameError:
		return true
	}
	return false
}

// refusalError is about one RRset that the server refused while it accepted others. A DNS reply has no reason but its rcode, so the usual
// cause is added.
func refusalError(k rrset.Key, err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("the server does not accept %s %s%s: %w", k.Name, dns.Type(k.Type), usualCause(k.Type, e.Rcode), err)
}

func usualCause(rrtype uint16, rcode int) string {
	const (
		noAddress = " (usual cause: %s in the zone has no address record)"
		hostName  = " (usual causes: the name is not a valid host name, for example because of an underscore; or it is the last address of the zone's name server)"
		tooMany   = " (usual causes: more records of one name and type than its max-records-per-type, 100 by default, or more than 64 KiB; or the server cannot write its files)"
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
