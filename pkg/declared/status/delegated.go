package status

import (
	"fmt"
	"strings"
	"time"
)

// DSRecordsAtAll says that all servers of the zones above have the DS records of keys.
func DSRecordsAtAll(servers int, zones, keys []string) Verdict {
	return True(DSPublished, fmt.Sprintf("all %d servers of %s have the DS record of key %s", servers, zonesNamed(zones), strings.Join(keys, ", ")))
}

// DSRecordsLack says that servers of the zones above lack DS records that they are to have.
func DSRecordsLack(zones, keys []string) Verdict {
	return False(DSPending, fmt.Sprintf("not all servers of %s have the DS record of key %s yet, since the zone asks for it", zonesNamed(zones), strings.Join(keys, ", ")))
}

// DSRecordsLeft says that servers of the zones above have DS records that are to go.
func DSRecordsLeft(zones, keys []string) Verdict {
	return False(DSPending, fmt.Sprintf("servers of %s still have the DS record of key %s", zonesNamed(zones), strings.Join(keys, ", ")))
}

// NotSignedEverywhere says that the time after which DS records follow has not begun.
func NotSignedEverywhere() Verdict {
	return False(DSPending, "not all servers of the zone have it signed yet")
}

// DSRecordsFrom says when DS records follow.
func DSRecordsFrom(at time.Time) Verdict {
	return False(DSPending, fmt.Sprintf("resolvers may have answers from before the zone was signed until %s: DS records follow then", at.UTC().Format(time.RFC3339)))
}

// DSRecordsDeclared says that objects declare the DS records in the zones above. matches means that one is of a key of the zone.
func DSRecordsDeclared(zones, keys []string, matches bool) Verdict {
	message := fmt.Sprintf("objects declare the DS records of %s, of key %s, and the zone changes nothing there", zonesNamed(zones), strings.Join(keys, ", "))
	if matches {
		return True(DSDeclared, message)
	}
	return False(DSDeclared, message+"; none is of a key of the zone: validating resolvers reject its answers")
}

// DSRecordsEarly says that zones above have DS records before the zone asks for any.
func DSRecordsEarly(zones []string) Verdict {
	return False(DSDeclared, zonesNamed(zones)+" has DS records that the zone has not asked for: none of its keys has been seen for its highest TTL yet")
}

const staysSigned = "the zone stays signed until no resolver can have a DS record of it: "

// SigningWaitsForServers says that servers of the zones above still have DS records or, unless seen, may have.
func SigningWaitsForServers(zones []string, seen bool) Verdict {
	if seen {
		return False(DSWithdrawing, staysSigned+"servers of "+zonesNamed(zones)+" still have one; if an object there declares it, delete that")
	}
	return False(DSWithdrawing, staysSigned+"not all servers of "+zonesNamed(zones)+" have answered that they have none")
}

// SigningEndsAt says when resolvers have forgotten the DS records.
func SigningEndsAt(at time.Time) Verdict {
	return False(DSWithdrawing, staysSigned+"the TTL of what they have ends at "+at.UTC().Format(time.RFC3339))
}

// SigningMayEnd says that nothing holds the end of signing.
func SigningMayEnd() Verdict {
	return False(DSAbsent, "no resolver can have a DS record of the zone any more: its signatures go")
}

func zonesNamed(zones []string) string { return "zone " + strings.Join(zones, ", ") }
