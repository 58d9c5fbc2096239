package guides

import (
	"regexp"
	"strings"
)

// What differs from one run to the next: times, addresses that are not those of examples (RFC 5737, RFC 3849), serials and digests.
var (
	duration = regexp.MustCompile(`^(\d+(\.\d+)?(d|h|m|s|ms|µs))+$`)
	address  = regexp.MustCompile(`^(\d+\.\d+\.\d+\.\d+)(:\d+)?$`)
	example  = regexp.MustCompile(`^(192\.0\.2|198\.51\.100|203\.0\.113)\.`)
	number   = regexp.MustCompile(`^\d{5,}$`)
	digest   = regexp.MustCompile(`^[0-9a-fA-F]{16,}$`)
)

// missing returns the first line of what a page shows that an output does not have, in this order; "" if it has all. An ellipsis stands
// for any text.
func missing(shown, output []string) string {
	for _, line := range trimEmpty(shown) {
		if strings.TrimSpace(line) == "…" || strings.TrimSpace(line) == "" {
			continue
		}
		pattern := patternOf(line)
		at := 0
		for at < len(output) && !pattern.MatchString(output[at]) {
			at++
		}
		if at == len(output) {
			return line
		}
		output = output[at+1:]
	}
	return ""
}

func patternOf(line string) *regexp.Regexp {
	var fields []string
	for _, field := range strings.Fields(line) {
		var pattern string
		switch {
		case duration.MatchString(field):
			pattern = `(\d+(\.\d+)?(d|h|m|s|ms|µs))+`
		case address.MatchString(field) && !example.MatchString(field):
			pattern = `[0-9.:]+`
		case number.MatchString(field):
			pattern = `\d+`
		case digest.MatchString(field):
			pattern = `[0-9a-fA-F]+`
		default:
			pattern = strings.ReplaceAll(regexp.QuoteMeta(field), "…", ".*")
		}
		fields = append(fields, pattern)
	}
	return regexp.MustCompile(`^\s*` + strings.Join(fields, `\s+`) + `\s*$`)
}
