package rrset

import (
	"net"

	"github.com/miekg/dns"
)

// Limits of one RRset, whatever its servers take: an answer has to fit into a message of 65535 bytes together with its names, TTLs and
// signature.
const (
	MaxRecords = 4000
	MaxSize    = 60000
)

// Size estimates the bytes that rdata takes in a message: exactly for the types that can be large, which are addresses and text. Of
// each record after the hundredth, the name, type, class, TTL and length count as well; there is room for those of the others.
func Size(rrtype uint16, rdata []string) int {
	const header, free = 12, 100
	size := header * max(0, len(rdata)-free)
	switch rrtype {
	case dns.TypeA:
		return size + net.IPv4len*len(rdata)
	case dns.TypeAAAA:
		return size + net.IPv6len*len(rdata)
	}
	return size + textSize(rdata)
}

// textSize is the size of rdata as text, which no escape makes smaller than it is in a message, and what it takes there if that is too much.
func textSize(rdata []string) int {
	size := 0
	for _, s := range rdata {
		size += len(s)
	}
	if size <= MaxSize {
		return size
	}
	size = 0
	for _, s := range rdata {
		size += decodedLength(s)
	}
	return size
}

// decodedLength counts an escape as the one byte that it stands for, and the two quotes and the blank around a string as
// its length byte.
func decodedLength(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			continue
		case s[i] == '\\' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			i += 3
		case s[i] == '\\':
			i++
		}
		n++
	}
	return n + 1
}
