package rndc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// Types of values in a message of the control channel (BIND's lib/isccc).
const (
	typeBinary byte = 1
	typeTable  byte = 2
)

func appendString(b []byte, key, value string) []byte {
	return appendValue(b, key, typeBinary, []byte(value))
}

// appendValue appends u8 key length, key, u8 type, u32 length, value.
func appendValue(b []byte, key string, kind byte, value []byte) []byte {
	b = append(b, byte(len(key))) //nolint:gosec // keys are short constants
	b = append(b, key...)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value))) //nolint:gosec // messages are below 1 MiB
	return append(b, value...)
}

// commandReply is the content of named's reply.
type commandReply struct {
	// signed is the part of the message that signature covers: everything after the table _auth.
	signed, signature []byte
	nonce             string
	result            int
	// failure names the result, text is the command's output or a longer explanation.
	failure, text string
}

// explanation returns named's explanation of a failed command.
func (r commandReply) explanation() string {
	text := strings.TrimSpace(r.text)
	switch {
	case text == "":
		return r.failure
	case r.failure == "" || strings.Contains(text, r.failure):
		return text
	default:
		return text + ": " + r.failure
	}
}

var errFormat = errors.New("malformed message on named's control channel")

// parseReply reads a message after its version field. The table _auth comes first.
func parseReply(b []byte) (commandReply, error) {
	var reply commandReply
	key, auth, rest, err := cutValue(b)
	if err != nil || key != "_auth" {
		return reply, errFormat
	}
	reply.signed = rest
	if reply.signature, err = lookUpValue(auth, "hsha"); err != nil {
		return reply, err
	}
	ctrl, err := lookUpValue(rest, "_ctrl")
	if err != nil {
		return reply, err
	}
	data, err := lookUpValue(rest, "_data")
	if err != nil {
		return reply, err
	}
	reply.nonce = optionalValue(ctrl, "_nonce")
	reply.failure, reply.text = optionalValue(data, "err"), optionalValue(data, "text")
	if result := optionalValue(data, "result"); result != "" {
		if reply.result, err = strconv.Atoi(result); err != nil {
			return reply, fmt.Errorf("%w: result %q", errFormat, result)
		}
	}
	return reply, nil
}

// cutValue splits the first value off a table.
func cutValue(b []byte) (key string, value, rest []byte, err error) {
	if len(b) < 1 || len(b) < 1+int(b[0])+5 {
		return "", nil, nil, errFormat
	}
	n := 1 + int(b[0])
	key = string(b[1:n])
	size := binary.BigEndian.Uint32(b[n+1:])
	b = b[n+5:]
	if uint64(size) > uint64(len(b)) {
		return "", nil, nil, errFormat
	}
	return key, b[:size], b[size:], nil
}

func lookUpValue(table []byte, name string) ([]byte, error) {
	for len(table) > 0 {
		key, value, rest, err := cutValue(table)
		if err != nil {
			return nil, err
		}
		if key == name {
			return value, nil
		}
		table = rest
	}
	return nil, fmt.Errorf("%w: no %s", errFormat, name)
}

func optionalValue(table []byte, name string) string {
	value, err := lookUpValue(table, name)
	if err != nil {
		return ""
	}
	return string(value)
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
