package rrset

import (
	"strings"

	"github.com/miekg/dns"
)

// foreignTypes are words of exports that stand for what a server does, with the numbers that its makers use for them, and the signature of a
// transfer that dig has printed.
var foreignTypes = map[string]struct {
	rrtype uint16
	what   string
}{
	"ALIAS":  {65401, "ALIAS is PowerDNS' own: its server answers with the addresses of another name; declare these"},
	"ANAME":  {65305, "ANAME is no type of DNS: such servers answer with the addresses of another name; declare these"},
	"AWS":    {65401, "AWS is a word of cli53, which exports zones of Route 53: its servers answer with the addresses of another name; declare these"},
	"TSIG":   {dns.TypeTSIG, "TSIG signs a transfer, as dig prints it, and is no data of the zone"},
	"LUA":    {65402, "LUA is PowerDNS' own: its server runs a program for each answer"},
	"WINS":   {65281, "WINS is Microsoft's own: its server asks another service for names that the zone does not have"},
	"WINSR":  {65282, "WINSR is Microsoft's own: its server asks another service for names that the zone does not have"},
	"WINS-R": {65282, "WINS-R is Microsoft's own: its server asks another service for names that the zone does not have"},
}

// ForeignType is the number of a type that only one maker's server has, and what to say of it, "" of other types.
func ForeignType(mnemonic string) (rrtype uint16, what string) {
	foreign := foreignTypes[strings.ToUpper(mnemonic)]
	return foreign.rrtype, foreign.what
}
