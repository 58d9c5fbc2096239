package bindcar

import (
	"regexp"
	"strconv"
)

// Lines of the text that zonestatus gives. A zone that named signs has two serials, and serves the signed one.
var (
	typeLine         = regexp.MustCompile(`(?m)^type: (\S+)$`)
	serialLine       = regexp.MustCompile(`(?m)^serial: (\d+)$`)
	signedSerialLine = regexp.MustCompile(`(?m)^signed serial: (\d+)$`)
)

// typeIn finds a zone's type; a zone without data has none.
func typeIn(status string) string {
	if found := typeLine.FindStringSubmatch(status); found != nil {
		return found[1]
	}
	return ""
}

// serialIn finds the serial that is served; a zone without data has none.
func serialIn(status string) (uint32, bool) {
	for _, line := range []*regexp.Regexp{signedSerialLine, serialLine} {
		if found := line.FindStringSubmatch(status); found != nil {
			serial, err := strconv.ParseUint(found[1], 10, 32)
			return uint32(serial), err == nil
		}
	}
	return 0, false
}
