package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/declared/forecast"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Forecast prints a line for each RRset that changes, and counts them.
func Forecast(zones []forecast.Zone, p Palette) string {
	rows := [][]cell{{{"ZONE", bold}, {"CHANGE", bold}, {"NAME", bold}, {"TYPE", bold}, {"TTL", bold}, {"VALUES", bold}, {"OBJECTS", bold}}}
	counts, changed, notes := map[forecast.Action]int{}, int32(0), ""
	for _, z := range zones {
		if len(z.Changes) > 0 {
			changed++
		}
		for _, c := range z.Changes {
			counts[c.Action]++
			rows = append(rows, []cell{
				{z.Object.Namespace + "/" + z.Object.Name, plain}, {string(c.Action), actionColor(c.Action)}, {c.Name, plain}, {c.Type, plain},
				{formatChange(c, func(d forecast.Data) string { return strconv.FormatUint(uint64(d.TTL), 10) }), plain},
				{formatChange(c, func(d forecast.Data) string { return formatValues(c.Type, d.Values) }), plain}, {joinObjects(c.Objects), plain},
			})
		}
		if z.Held {
			notes += oneLine(fmt.Sprintf("%s would be Held: its guard sends none of what exceeds it until somebody confirms that", z.Object)) + "\n"
		}
		for _, u := range z.Unpublished {
			notes += oneLine(fmt.Sprintf("%s would not be published: %s", u.Object, u.Message)) + "\n"
		}
		if z.Problem != "" {
			notes += oneLine(fmt.Sprintf("%s would not be served: %s", z.Object, z.Problem)) + "\n"
		}
	}
	if len(rows) == 1 {
		return notes + "no answer changes\n"
	}
	sets, in := pluralize(int32(len(rows)-1), "RRset"), pluralize(changed, "zone") //nolint:gosec // a count of what is printed
	return p.formatTable(rows) + notes + fmt.Sprintf("%s in %s: %d appear, %d change, %d vanish\n", sets, in, counts[forecast.Appears], counts[forecast.Changes], counts[forecast.Vanishes])
}

func actionColor(a forecast.Action) textColor {
	switch a {
	case forecast.Appears:
		return green
	case forecast.Changes:
		return yellow
	default:
		return red
	}
}

// formatChange shows a part of what an RRset holds, as it was and as it would be if these differ.
func formatChange(c forecast.Change, part func(forecast.Data) string) string {
	switch {
	case c.Before == nil:
		return part(*c.After)
	case c.After == nil:
		return part(*c.Before)
	}
	before, after := part(*c.Before), part(*c.After)
	if before == after {
		return before
	}
	return before + " → " + after
}

// formatValues joins values. The serial of an SOA record is a word where it is the servers' own.
func formatValues(rrtype string, values []string) string {
	text := strings.Join(values, ", ")
	if soa, err := rrset.ParseSOA(text); rrtype == "SOA" && err == nil && soa.Serial == 0 {
		return soa.MName + " " + soa.RName + " SERIAL" + strings.TrimPrefix(soa.Rdata(), soa.MName+" "+soa.RName+" 0")
	}
	return text
}

// joinObjects names the first few of the objects that declare an RRset.
func joinObjects(objects []forecast.Object) string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.String()
	}
	return status.JoinSome(names, status.Few, ", ")
}
