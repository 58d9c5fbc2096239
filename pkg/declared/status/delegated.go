package status

import (
	"fmt"
	"strings"
	"time"
)

// DSRecordsAtAll says that all servers of the zones above have the DS records of keys.
func DSRecordsAtAll(servers int, zones, keys []string) Verdict {
	return True(DSPublished, fmt.Sprintf("all %d servers of %s have the DS record of key %s", servers, zonesNamed(zones), keysNamed(keys)))
}

// ParentsSilent says that some servers of the zones above, or all, do not answer; the others have the DS records of keys.
func ParentsSilent(silent, servers int, zones, keys []string) Verdict {
	who := fmt.Sprintf("%d of %d servers of %s do not answer", silent, servers, zonesNamed(zones))
	if silent == servers {
		who = "no server of " + zonesNamed(zones) + " answers"
	}
	return Unknown(ParentSilent, who+": whether they have the DS record of key "+keysNamed(keys)+" is not known")
}

// DSRecordsLack says that servers of the zones above lack DS records that they are to have.
func DSRecordsLack(zones, keys []string) Verdict {
	return False(DSPending, fmt.Sprintf("not all servers of %s have the DS record of key %s yet, since the zone asks for it", zonesNamed(zones), keysNamed(keys)))
}

// DSRecordsLeft says that servers of the zones above have DS records that are to go.
func DSRecordsLeft(zones, keys []string) Verdict {
	return False(DSPending, fmt.Sprintf("servers of %s still have the DS record of key %s", zonesNamed(zones), keysNamed(keys)))
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
	message := fmt.Sprintf("objects declare the DS records of %s, of key %s, and the zone changes nothing there", zonesNamed(zones), keysNamed(keys))
	if matches {
		return True(DSDeclared, message)
	}
	return False(DSDeclared, message+"; none is of a key of the zone: validating resolvers reject its answers")
}

// DSRecordsEarly says that zones above have DS records before the zone asks for any.
func DSRecordsEarly(zones []string) Verdict {
	return False(DSDeclared, zonesNamed(zones)+" has DS records that the zone has not asked for: none of its keys has been seen for its highest TTL yet")
}

// RegistryIsBehind says that servers of a zone above that is not declared here lack DS records, or have others, than those that the zone asks
// for by CDS records, and since when. matches means that all of them have one of a key of the zone.
func RegistryIsBehind(zones, missing, others []string, since time.Time, matches bool) Verdict {
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, "not all servers of "+zonesNamed(zones)+" have the DS record of key "+keysNamed(missing))
	}
	if len(others) > 0 {
		parts = append(parts, "servers of "+zonesNamed(zones)+" have that of key "+keysNamed(others))
	}
	message := strings.Join(parts, ", and ")
	if !since.IsZero() {
		message += fmt.Sprintf(", against what CDS records ask for since %s", since.UTC().Format(time.RFC3339))
	}
	if len(others) > 0 && !matches {
		message += "; none that all of them have is of a key of the zone: validating resolvers may reject its answers"
	}
	return False(RegistryBehind, message)
}

// RegistryUnmatched says that servers of a zone above that is not declared here have DS records of which none is of a key of the zone, but
// of these.
func RegistryUnmatched(zones, others []string) Verdict {
	return False(DSUnmatched, fmt.Sprintf("servers of %s have DS records of key %s, and none of a key of the zone: validating resolvers reject its answers", zonesNamed(zones), keysNamed(others)))
}

// SigningWaitsForRegistry says that a zone above that is not declared here still has DS records. asked means that CDS records ask for their
// removal.
func SigningWaitsForRegistry(zones []string, asked bool) Verdict {
	if !asked {
		return False(DSWithdrawing, staysSigned+"the server that signs is to be told of those that "+zonesNamed(zones)+" has")
	}
	return False(DSWithdrawing, staysSigned+zonesNamed(zones)+" still has one, and CDS records ask for its removal (RFC 8078); if it does not follow, remove it there")
}

const staysSigned = "the zone stays signed until no resolver can have a DS record of it: "

// stays says how long a zone stays signed, or has to be if others sign it.
func stays(theirs bool) string {
	if theirs {
		return "its servers have to sign the zone until no resolver can have a DS record of it: "
	}
	return staysSigned
}

// CDSNotFollowed says why the zones above do not follow what a zone that others sign asks for by CDS records, and that they keep the DS
// records of keys.
func CDSNotFollowed(why string, zones, keys []string) Verdict {
	message := "others sign the zone, and what it asks for is not followed: " + why
	if len(keys) == 0 {
		return False(CDSRejected, message+"; "+zonesNamed(zones)+" has no DS record of it")
	}
	return False(CDSRejected, message+"; "+zonesNamed(zones)+" keeps the DS record of key "+keysNamed(keys))
}

// SigningWaitsForServers says that servers of the zones above still have DS records or, unless seen, may have. theirs means that others sign
// the zone.
func SigningWaitsForServers(theirs bool, zones []string, seen bool) Verdict {
	if seen {
		return False(DSWithdrawing, stays(theirs)+"servers of "+zonesNamed(zones)+" still have one; if an object there declares it, delete that")
	}
	return False(DSWithdrawing, stays(theirs)+"not all servers of "+zonesNamed(zones)+" have answered that they have none")
}

// SigningEndsAt says when resolvers have forgotten the DS records.
func SigningEndsAt(theirs bool, at time.Time) Verdict {
	return False(DSWithdrawing, stays(theirs)+"the TTL of what they have ends at "+at.UTC().Format(time.RFC3339))
}

// SigningMayEnd says that nothing holds the end of signing.
func SigningMayEnd(theirs bool) Verdict {
	if theirs {
		return False(DSAbsent, "no resolver can have a DS record of the zone any more: its servers may stop signing")
	}
	return False(DSAbsent, "no resolver can have a DS record of the zone any more: its signatures go")
}

func zonesNamed(zones []string) string { return "zone " + strings.Join(zones, ", ") }

// keysNamed are some key tags: a zone above may have many DS records.
func keysNamed(tags []string) string { return JoinSome(tags, Few, ", ") }
