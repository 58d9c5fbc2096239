package rrset

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
// current. It is never 0 and SerialLess(current, NextSerial(current, now)) holds. With current 0, which means that there is no serial
// yet, it is now (1 when now is 0).
func NextSerial(current, now uint32) uint32 {
	switch {
	case current == 0:
		return max(now, 1)
	case now != 0 && SerialLess(current, now):
		return now
	}
	return AddSerial(current, 1)
}
