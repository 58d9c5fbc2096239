package rrset

import (
	"strconv"

	"github.com/miekg/dns"
)

// SOA is a zone's start of authority (RFC 1035 section 3.3.13). It is kept apart from the other RRsets because its
// serial is assigned at apply time and is never part of what a user desires.
type SOA struct {
	// MName is the primary server's name and RName the mailbox, both canonical names.
	MName, RName string
	// Serial is compared by RFC 1982 arithmetic, see SerialLess.
	Serial uint32
	// Refresh, Retry, Expire and Minimum (negative TTL, RFC 2308) in seconds.
	Refresh, Retry, Expire, Minimum uint32
	// TTL of the SOA RRset itself in seconds.
	TTL uint32
}

// SameData compares all but the serial.
func (s SOA) SameData(o SOA) bool {
	s.Serial = o.Serial
	return s == o
}

// Rdata is the canonical presentation form, without the TTL.
func (s SOA) Rdata() string {
	out := make([]byte, 0, len(s.MName)+len(s.RName)+48)
	out = append(append(out, s.MName...), ' ')
	out = append(out, s.RName...)
	for _, v := range [...]uint32{s.Serial, s.Refresh, s.Retry, s.Expire, s.Minimum} {
		out = strconv.AppendUint(append(out, ' '), uint64(v), 10)
	}
	return string(out)
}

// FromSOA converts an SOA record as it came from the network, with canonical names.
func FromSOA(rr *dns.SOA) SOA {
	return SOA{
		MName: lenientName(rr.Ns), RName: lenientName(rr.Mbox),
		Serial: rr.Serial, Refresh: rr.Refresh, Retry: rr.Retry, Expire: rr.Expire, Minimum: rr.Minttl,
		TTL: min(rr.Hdr.Ttl, MaxTTL),
	}
}

// ToSOA makes the SOA record of a zone.
func ToSOA(zone string, s SOA) *dns.SOA {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: s.TTL},
		Ns:  s.MName, Mbox: s.RName,
		Serial: s.Serial, Refresh: s.Refresh, Retry: s.Retry, Expire: s.Expire, Minttl: s.Minimum,
	}
}

// MaxSerialStep is by how much a serial can be raised at once (RFC 1982 section 3.1).
const MaxSerialStep = 1<<31 - 1

// SerialLess reports whether serial a comes before b in serial number arithmetic (RFC 1982 section 3.2). Two serials that are exactly
// 2^31 apart have no order: neither is less.
func SerialLess(a, b uint32) bool {
	return a != b && b-a < 1<<31
}

// AddSerial counts n steps on from s. The serial 0 is skipped, as BIND does: 4294967295 is followed by 1. Steps add up:
// AddSerial(AddSerial(s, a), b) is AddSerial(s, a+b). With n above 2^31-2 the result may no longer come after s (RFC 1982 section 3.1).
func AddSerial(s, n uint32) uint32 {
	sum := s + n
	if sum < s {
		sum++
	}
	return sum
}

// NextSerial chooses the serial of the change after current: the Unix time now if that is ahead of current, else the serial that follows
// current. It is never 0 and SerialLess(current, NextSerial(current, now)) holds.
func NextSerial(current, now uint32) uint32 {
	if now != 0 && SerialLess(current, now) {
		return now
	}
	return AddSerial(current, 1)
}
