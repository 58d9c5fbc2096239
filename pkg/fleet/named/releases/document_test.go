package releases

import (
	"fmt"
	"strings"
)

// difference is one that a configuration does not show.
type difference struct {
	subject string
	// in918 and in920 are what each does.
	in918, in920 string
	// lockstep is what Lockstep does, so that both serve the same.
	lockstep string
}

var differences = []difference{
	{"`dnssec-policy` and `inline-signing`", "a zone without updates needs `inline-signing yes`", "`inline-signing yes` is the default of every policy",
		"each zone's clause says `inline-signing`, so the policy's default never counts"},
	{"`nsec3param iterations` of a policy", "up to 150", "0 only", "`nsec3Iterations` above that is `ConfigurationInvalid`"},
	{"`auto-dnssec`, `update-check-ksk`, `sig-validity-interval` and their like", "sign zones beside `dnssec-policy`", "gone, or without effect", "signs by `dnssec-policy` alone"},
	{"`max-records-per-type`, `max-types-per-name`", "100, since 9.18.28", "100; types that were removed from a name count until the zone is loaded",
		"`maxRecordsPerType` sets the first; `rndc freeze` and `thaw` load a zone"},
	{"`rndc retransfer`", "waits for a transfer under way, for half a minute if nothing comes of it", "`-force` ends that one", "the sidecar forces where nothing came for two seconds"},
	{"`rndc tsig-list`", "lists the keys that named has", "gone", "the sidecar asks by a request that is signed wrongly: named's log says `tsig verify failure (BADSIG)` then"},
	{"turning signing off (`insecure`)", "keys leave the zone once the DS record is withdrawn", "keys leave the zone a day and an hour after that",
		"tells named that the DS record was withdrawn before that day"},
	{"DS records in the zone above, during a roll-over", "is told of them", "asks the name servers of the zone above, too, if it reaches them", "tells both"},
	{"zone files, journals, list of zones (`.nzd`)", "reads those of 9.20", "reads those of 9.18", "a volume is kept when `version` changes, in both directions"},
}

// document returns the tables of docs/reference/bind.md, in Markdown.
func document() string {
	var b strings.Builder
	b.WriteString("| | 9.18 | 9.20 | Lockstep |\n|---|---|---|---|\n")
	for _, d := range differences {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.subject, d.in918, d.in920, d.lockstep)
	}
	b.WriteString("\n| statement | in | release | in the other one |\n|---|---|---|---|\n")
	for _, s := range statements {
		place := "top of the file"
		if s.In != inTop {
			place = "`" + s.In + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Keyword, place, s.Only[0], s.Instead)
	}
	return b.String()
}
