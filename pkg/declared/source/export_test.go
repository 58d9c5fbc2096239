package source

// For tests of what servers make of a zone by way of packages that depend on this one.
var (
	OddZone, SpelledZone, ZoneFile, Served, Wanted = oddZone, spelledZone, zoneFile, served, wanted
)

// ExtraOptions are those of named.
const ExtraOptions = extra
