package rndc

import (
	"errors"
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
		reply, err := parseReply(message)
		if err == nil && len(reply.signed) >= len(message) {
			t.Errorf("%d signed bytes of %d", len(reply.signed), len(message))
		}
	})
}

func TestControlFormat(t *testing.T) {
	if _, err := parseReply(nil); !errors.Is(err, errFormat) {
		t.Errorf("got %v", err)
	}
}
