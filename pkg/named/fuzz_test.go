package named

import (
	"errors"
	"strings"
	"testing"
)

// FuzzControlMessage: whatever comes from the control channel is read without a panic, and what was read of a signed
// part is inside the message.
func FuzzControlMessage(f *testing.F) {
	body := appendValue(nil, "_ctrl", typeTable, appendString(nil, "_nonce", "7"))
	body = appendValue(body, "_data", typeTable, appendString(appendString(nil, "result", "0"), "text", "up"))
	f.Add(append(appendValue(nil, "_auth", typeTable, appendValue(nil, "hsha", typeBinary, make([]byte, 89))), body...))
	f.Add([]byte{5, '_', 'a', 'u', 't', 'h', 2, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		reply, err := parseControl(message)
		if err == nil && len(reply.signed) >= len(message) {
			t.Errorf("%d signed bytes of %d", len(reply.signed), len(message))
		}
	})
}

// FuzzMatchList: no value of a list can end it, or begin a comment or a string that it does not end.
func FuzzMatchList(f *testing.F) {
	for _, seed := range []string{"any", "!10.0.0.1", "2001:db8::/32", "key x.", "acl:office", `key "a"`, "any; }; zone", "/* x", "10.0.0.0/8 // x", "fe80::1%eth0\"; }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, element string) {
		text, err := MatchList("field", []string{element}, func(string) bool { return true })
		if err != nil {
			if !strings.Contains(err.Error(), "field") {
				t.Errorf("the error does not name the field: %v", err)
			}
			return
		}
		if inner, ok := strings.CutSuffix(text, "; "); !ok || strings.ContainsAny(inner, ";{}#*\\\n\r") || strings.Count(inner, `"`)%2 != 0 || strings.Contains(inner, "//") {
			t.Errorf("%q becomes %q", element, text)
		}
	})
}

func TestControlFormat(t *testing.T) {
	if _, err := parseControl(nil); !errors.Is(err, errControlFormat) {
		t.Errorf("got %v", err)
	}
}
