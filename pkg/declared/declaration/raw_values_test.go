package declaration

import (
	"strings"
	"testing"
)

// TestRawDataOfKnownTypes: bytes of a type that has rules are refused if BIND refuses them.
func TestRawDataOfKnownTypes(t *testing.T) {
	for _, tc := range []struct {
		rrtype, data string
		good         bool
	}{
		{"TYPE1", `\# 4 c0000201`, true}, {"TYPE1", `\# 3 c00002`, false},
		{"TYPE16", `\# 2 0178`, true}, {"TYPE16", `\# 1 00`, true}, {"TYPE16", `\# 0`, false}, {"TXT", `\# 0`, false},
		{"TYPE15", `\# 3 000a00`, true}, {"TYPE15", `\# 2 000a`, false},
		{"TYPE257", `\# 4 00016178`, true}, {"TYPE257", `\# 2 0000`, false},
		{"TYPE33", `\# 6 000000000000`, false}, {"TYPE28", `\# 0`, false},
	} {
		d := typedValues(tc.rrtype, []string{tc.data}, "example.test.")
		if (d.err == nil) != tc.good {
			t.Errorf("%s %s becomes %q, %v", tc.rrtype, tc.data, d.rdata, d.err)
		}
		if d.err != nil && !strings.Contains(d.err.Error(), "no data of a record of type") {
			t.Errorf("%s %s: %v", tc.rrtype, tc.data, d.err)
		}
	}
}
