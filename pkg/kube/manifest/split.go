package manifest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"unicode/utf16"
)

// documentStart is where a YAML document begins: kubectl splits at these lines as well.
var documentStart = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

// behindStart is text in the first line of a document, which YAML allows.
var behindStart = regexp.MustCompile(`^---[ \t]+[^ \t\r\n#]`)

// markAtStart is a byte order mark behind such a line, as in files of Windows that were joined. kubectl skips it.
var markAtStart = regexp.MustCompile(`(?m)^(---(?:[ \t].*)?\r?\n)\x{feff}`)

// splitDocuments cuts a file before each line that begins a document, so that one that cannot be read does not hide the others.
func splitDocuments(text []byte) [][]byte {
	var parts [][]byte
	begin := 0
	text = markAtStart.ReplaceAll(text, []byte("$1"))
	for _, at := range documentStart.FindAllIndex(text, -1) {
		parts = append(parts, text[begin:at[0]])
		begin = at[0]
	}
	parts = append(parts, text[begin:])
	return append(splitValues(parts[0]), parts[1:]...)
}

// splitValues splits JSON before its second value and each one after that, as kubectl does with what begins with an object. Other text is one
// part.
func splitValues(text []byte) [][]byte {
	var parts [][]byte
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return [][]byte{text}
	}
	decoder, begin := json.NewDecoder(bytes.NewReader(text)), 0
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if err != nil && (!errors.Is(err, io.EOF) || len(parts) == 0) {
			return append(parts, text[begin:])
		}
		if err != nil {
			parts[len(parts)-1] = text[begin-len(parts[len(parts)-1]):] // with the line ends behind it
			return parts
		}
		end := int(decoder.InputOffset())
		parts, begin = append(parts, text[begin:end]), end
	}
}

// toUTF8 converts what a byte order mark says is UTF-16.
func toUTF8(text []byte) []byte {
	order := binary.ByteOrder(binary.LittleEndian)
	switch {
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	case !bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		return text
	}
	units := make([]uint16, 0, len(text)/2)
	for i := 2; i+1 < len(text); i += 2 {
		units = append(units, order.Uint16(text[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}
