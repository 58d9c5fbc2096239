package coredns

import (
	"strconv"
	"strings"
)

// This file writes and reads the JSON of values whose strings need no escape, as nearly all are, in a tenth of the time of
// encoding/json. The tests compare both.

// usualSize is enough for the JSON, and the key, of most values.
const usualSize = 384

// isPlain reports whether JSON has all strings of a value as they are.
func isPlain(v *value) bool {
	for _, text := range [...]string{v.Host, v.Text, v.Group, v.Marker.Owner, v.Marker.Zone, v.Marker.Type} {
		for i := range len(text) {
			if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
				return false
			}
		}
	}
	return true
}

// appendPlain appends the JSON of a plain value, its fields in the order of their declaration.
func appendPlain(out []byte, v *value) []byte {
	out = append(out, '{')
	out = appendText(out, hostField, v.Host)
	out = appendNumber(out, portField, int64(v.Port))
	out = appendNumber(out, priorityField, int64(v.Priority))
	out = appendNumber(out, weightField, int64(v.Weight))
	out = appendText(out, textField, v.Text)
	if v.Mail {
		out = append(out, mailField...)
	}
	out = appendNumber(out, ttlField, int64(v.TTL))
	out = appendNumber(out, stripField, int64(v.TargetStrip))
	out = appendText(out, groupField, v.Group)
	if m := v.Marker; m != (marker{}) {
		out = append(append(out, ownerField...), m.Owner...)
		out = append(append(out, zoneField...), m.Zone...)
		out = append(append(append(out, typeField...), m.Type...), `"},`...)
	}
	if last := len(out) - 1; out[last] == ',' {
		out = out[:last]
	}
	return append(out, '}')
}

// What comes before the fields' values.
const (
	hostField     = `"host":"`
	portField     = `"port":`
	priorityField = `"priority":`
	weightField   = `"weight":`
	textField     = `"text":"`
	mailField     = `"mail":true,`
	ttlField      = `"ttl":`
	stripField    = `"targetstrip":`
	groupField    = `"group":"`
	ownerField    = `"lockstep":{"owner":"`
	zoneField     = `","zone":"`
	typeField     = `","type":"`
)

func appendText(out []byte, field, text string) []byte {
	if text == "" {
		return out
	}
	return append(append(append(out, field...), text...), `",`...)
}

func appendNumber(out []byte, field string, n int64) []byte {
	if n == 0 {
		return out
	}
	return append(strconv.AppendInt(append(out, field...), n, 10), ',')
}

// guessPlain is the value whose JSON this is if it is that of any plain value. Of other JSON it makes some value.
func guessPlain(raw string) (v value) {
	r := fieldReader{strings.TrimPrefix(raw, "{")}
	v.Host = r.text(hostField)
	v.Port = r.number(portField)
	v.Priority = r.number(priorityField)
	v.Weight = r.number(weightField)
	v.Text = r.text(textField)
	v.Mail = r.skip(mailField)
	v.TTL = uint32(r.number(ttlField)) //nolint:gosec // a guess
	v.TargetStrip = r.number(stripField)
	v.Group = r.text(groupField)
	v.Marker = marker{Owner: r.text(ownerField), Zone: r.text(zoneField[2:]), Type: r.text(typeField[2:])}
	return v
}

// fieldReader is what of a value's JSON is still to be read.
type fieldReader struct{ rest string }

// skip goes behind a field if it comes next.
func (r *fieldReader) skip(field string) (found bool) {
	r.rest, found = strings.CutPrefix(r.rest, field)
	return found
}

// text reads a field that is a string, if it comes next.
func (r *fieldReader) text(field string) (text string) {
	if r.skip(field) {
		text, r.rest, _ = strings.Cut(r.rest, `"`)
		r.skip(",")
	}
	return text
}

// number reads a field that is a number, if it comes next.
func (r *fieldReader) number(field string) (n int) {
	if r.skip(field) {
		end := strings.IndexAny(r.rest, ",}")
		n, _ = strconv.Atoi(r.rest[:max(end, 0)])
		r.rest = strings.TrimPrefix(r.rest[max(end, 0):], ",")
	}
	return n
}
