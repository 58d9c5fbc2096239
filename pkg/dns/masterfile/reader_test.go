package masterfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const start = "@ 3600 SOA ns.example.net. h 7 3600 600 86400 60\n"

// readAll reads the file "zone" of some files as example.com, without its SOA record.
func readAll(files map[string]string) (lines []string, err error) {
	open := func(name string) (string, string, error) {
		text, found := files[name]
		if !found {
			return "", "", fs.ErrNotExist
		}
		return name, text, nil
	}
	err = Read("example.com.", "zone", files["zone"], open, func(r Record) error {
		name := strings.TrimSuffix(strings.TrimSuffix(r.Name, "example.com."), ".")
		line := fmt.Sprintf("%s %s %d %s %s", r.Place, name, r.TTL, rrset.TypeName(r.Type), r.Rdata)
		if r.Problem != "" || r.Class != 0 || r.Aged {
			line += fmt.Sprintf("problem %q class %d aged %v", r.Problem, r.Class, r.Aged)
		}
		if rrset.TypeName(r.Type) != "SOA" {
			lines = append(lines, line)
		}
		return nil
	})
	return lines, err
}

// What BIND does is in the differential test of package zoneimport; this is what a reader wants to see of it.
func TestRead(t *testing.T) {
	tests := map[string]struct {
		text  string
		files map[string]string
		want  []string
	}{
		"the default TTL goes to $GENERATE": {text: "$TTL 300\n" + start + "$GENERATE 1-2 g$ A 192.0.2.$\n",
			want: []string{"zone:3 g1 300 A 192.0.2.1", "zone:3 g2 300 A 192.0.2.2"}},
		"the SOA's minimum is a default": {text: "@ SOA ns.example.net. h 7 3600 600 86400 60\na 500 A 192.0.2.1\nb A 192.0.2.2\n",
			want: []string{"zone:2 a 500 A 192.0.2.1", "zone:3 b 60 A 192.0.2.2"}},
		"the last TTL, corrected to that of the RRset": {text: start + "h 100 A 192.0.2.1\nh 200 A 192.0.2.2\nb A 192.0.2.3\n",
			want: []string{"zone:2 h 100 A 192.0.2.1", "zone:3 h 100 A 192.0.2.2", "zone:4 b 100 A 192.0.2.3"}},
		"the last TTL of a $GENERATE": {text: start + "$GENERATE 1-1 g$ 222 A 192.0.2.1\nb A 192.0.2.2\n",
			want: []string{"zone:2 g1 222 A 192.0.2.1", "zone:3 b 222 A 192.0.2.2"}},
		"more than 31 bits": {text: start + "a 2147483648 A 192.0.2.1\n", want: []string{"zone:2 a 0 A 192.0.2.1"}},
		"$TTL of an included file, its owner, and not its $ORIGIN": {text: "$TTL 300\n" + start + "a A 192.0.2.1\n$INCLUDE \"a b;c\" sub\n TXT x\nb A 192.0.2.2\n",
			files: map[string]string{"a b;c": " TXT y\n$TTL 55\n$ORIGIN deep\nc A 192.0.2.3\n"},
			want:  []string{"zone:3 a 300 A 192.0.2.1", `a b;c:1 a 300 TXT "y"`, "a b;c:4 c.deep.sub 55 A 192.0.2.3", `zone:5 a 55 TXT "x"`, "zone:6 b 55 A 192.0.2.2"}},
		"a line end in parentheses is a blank": {text: start + "a 1 TXT (x\ny)\nb 1 MX (10\nc)\nd 1 A(192.0.2.1)\n",
			want: []string{`zone:2 a 1 TXT "x" "y"`, "zone:4 b 1 MX 10 c.example.com.", "zone:6 d 1 A 192.0.2.1"}},
		"texts":           {text: start + `a 1 TXT x"y;z"\;\065\"(` + "\n\"\")\n", want: []string{`zone:2 a 1 TXT "x" "y;z" ";A\"" ""`}},
		"RFC 3597":        {text: start + "a 1 TYPE1 \\# 4 c0 000201\nb CLASS1 1 TYPE65280 \\# 0\nc 1 TXT \\# x\n", want: []string{"zone:2 a 1 A 192.0.2.1", `zone:3 b 1 TYPE65280 \# 0`, `zone:4 c 1 TXT "#" "x"`}},
		"another class":   {text: start + "a 1 CH A 192.0.2.1\n$GENERATE 1-2147483647 a$ 1 HS A 192.0.2.1\n", want: []string{`zone:2 a 0 A problem "" class 3 aged false`, `zone:3 a1 1 A problem "" class 4 aged false`}},
		"not expressed":   {text: start + "a 1 CAA 0 averyveryverylongtag x\n", want: []string{`zone:2 a 1 CAA problem "CAA rdata \"0 averyveryverylongtag \\\"x\\\"\": tag \"averyveryverylongtag\" is not 1 to 15 letters and digits (RFC 8659 section 4.1), such as issue" class 0 aged false`}},
		"Microsoft's age": {text: start + "a [AGE:3636591]\t1200\tA\t192.0.2.1\n  [AGE:3636592] A 192.0.2.2\n", want: []string{`zone:2 a 1200 A 192.0.2.1problem "" class 0 aged true`, `zone:3 a 1200 A 192.0.2.2problem "" class 0 aged true`}},
		"types without a text": {text: start + "a 1 UID 100\na 1 CLA x\na 1 GID \\# 1 0a\n", want: []string{
			`zone:2 a 1 UID problem "UID data is read in the form of RFC 3597 only: \\# LENGTH HEX" class 0 aged false`,
			`zone:3 a 1 CLA problem "CLA data is read in the form of RFC 3597 only: \\# LENGTH HEX" class 0 aged false`, `zone:4 a 1 GID \# 1 0a`}},
		"$GENERATE formats": {text: start + "$GENERATE 26-26 ${0,3,n}.${-30,4}-$.$$\\$ 1 TXT \"${0,2,x} ${1,3,o}\" ; x\n", want: []string{`zone:2 a.1.-004--4.\$\$ 1 TXT "1a" "033"`}},
		"addresses of a delegation stand between its records": {text: start + "sub 1 NS ns.sub\nns.sub 2 A 192.0.2.1\nsub 3 NS x.example.net.\nSub 4 NS y.example.net.\n",
			want: []string{"zone:3 ns.sub 2 A 192.0.2.1", "zone:2 sub 1 NS ns.sub.example.com.", "zone:4 sub 1 NS x.example.net.", "zone:5 sub 4 NS y.example.net."}},
		"an included file goes on with the address's owner": {text: start + "sub 1 NS ns.sub\nns.sub 2 A 192.0.2.1\n$INCLUDE i\n", files: map[string]string{"i": " A 192.0.2.2\n"},
			want: []string{"zone:2 sub 1 NS ns.sub.example.com.", "zone:3 ns.sub 2 A 192.0.2.1", "i:1 ns.sub 2 A 192.0.2.2"}},
		"bytes that are other data": {text: start + "a 1 MX \\# 4 000ac000\n",
			want: []string{`zone:2 a 1 MX problem "its bytes are not data of this type: they would be 10 ." class 0 aged false`}},
		"signatures of several types": {text: start + "a 1 RRSIG A 8 3 1 1 1 1 . AAAA\na 2 RRSIG MX 8 3 1 1 1 1 . AAAA\nb A 192.0.2.1\n",
			want: []string{"zone:2 a 1 RRSIG ", "zone:3 a 2 RRSIG ", "zone:4 b 2 A 192.0.2.1"}},
		"lines end as they like": {text: start + "a 1 A 192.0.2.1\r\nb 1 A 192.0.2.2\rc 1 A 192.0.2.3 ; x", want: []string{"zone:2 a 1 A 192.0.2.1", "zone:3 b 1 A 192.0.2.2", "zone:3 c 1 A 192.0.2.3"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"zone": tc.text}
			for name, text := range tc.files {
				files[name] = text
			}
			got, err := readAll(files)
			if d := cmp.Diff(tc.want, got); d != "" || err != nil {
				t.Errorf("%v; want (-), got (+):\n%s", err, d)
			}
		})
	}
}

// Each error has the line of the entry.
func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a 1 TXT " + strings.Repeat("x", 256) + "\n": "256 bytes, more than 255",
		"a 1 TXT \\256\n":                     `the escape \256`,
		"a 1 TXT \\1\n":                       "without three digits",
		"a 1 TXT \"x\ny\"\n":                  "a quote is not closed",
		"a 1 TXT (x\n":                        `a "(" is not closed`,
		"a 1 A 192.0.2.1)\n":                  `")" closes no "("`,
		"a 1 A 192.0.2.1 x\n":                 `"x" is more than the type has`,
		"a 1 MX 10\n":                         "the data ends where a name belongs",
		"a 1 A \\# 4 C00002\n":                `\# 4 does not go with 6 hexadecimal digits`,
		"a 1 NAPTR 1 1 u x \"!a!\\\\1!\" .\n": "a group that the expression does not have",
		"a 1x A 192.0.2.1\n":                  `"1x" is neither a TTL, a class nor a known type`,
		"a \"A\" 192.0.2.1\n":                 "in quotes where a TTL, a class or a type belongs",
		"a\n":                                 "the type of the record is missing",
		"a..b 1 A 192.0.2.1\n":                "an empty label",
		"a 1 OPT x\n":                         "no zone has records of type OPT",
		"$NONSENSE x\n":                       `no directive "$NONSENSE"`,
		"$TTL 1h x\n":                         "$TTL takes one value",
		"$TTL x\n":                            `$TTL "x" is not a time`,
		"$TTL 5":                              "the file ends within the line of a $TTL",
		"$DATE 20261301000000\n":              "is not a date",
		"$GENERATE 1-2 a$ 1 MX 10 m$\n":       "put data that has blanks in quotes",
		"$GENERATE 1-2 a$ 1 SOA \"a b 1 1 1 1 1\"\n":        "a zone has one SOA record",
		"$GENERATE 2-1 a$ 1 A 192.0.2.1\n":                  "does not go upwards",
		"$GENERATE 1-2 a${1 1 A 192.0.2.1\n":                "has a format of $ that is not",
		"$GENERATE 1-2 a$ 1 A (192.0.2.1)\n":                "the data of a $GENERATE is in parentheses",
		strings.Repeat("abc.", 62) + "a 1 A 192.0.2.1\n":    "more than 255 bytes with the origin",
		"$INCLUDE zone\n":                                   "32 files include each other",
		"$INCLUDE gone\n":                                   `$INCLUDE "gone": file does not exist`,
		"a\x00 1 A 192.0.2.1\n":                             "a byte 0 outside of quotes",
		"sub SOA a b 1 1 1 1 1\n":                           "belongs to sub.example.com.",
		"example.com SOA a b 1 1 1 1 1\n":                   "example.com.example.com.: a dot is missing at the end of its name",
		"a 1 TXT " + strings.Repeat("x ", maxWords) + "x\n": "more than 262144 words",
	} {
		_, err := readAll(map[string]string{"zone": start + text})
		if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Place != (Place{"zone", 2}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := readAll(map[string]string{"zone": " A 192.0.2.1\n"}); err == nil || !strings.Contains(err.Error(), "no owner before it") {
		t.Error(err)
	}
	if err := Read("example.com.", "zone", "$INCLUDE x\n", nil, nil); !errors.Is(err, ErrNoInclude) {
		t.Error(err)
	}
}

// What one entry stands for, and what one owner has, is handed over piece by piece, and ends when the caller has enough.
func TestReadIsBounded(t *testing.T) {
	errFull := errors.New("full")
	for name, text := range map[string]string{
		"a range":   "$GENERATE 0-2147483647 a$ 1 A 192.0.2.1\n",
		"one owner": strings.Repeat("a 1 HINFO\n", 2*maxBatch),
		"one RRset": "a 1 A 192.0.2.1\n" + strings.Repeat(" A 192.0.2.1\n", maxBatch),
	} {
		count, most := 0, 1000
		err := Read("example.com.", "zone", start+text, nil, func(Record) error {
			if count++; count > most {
				return errFull
			}
			return nil
		})
		if !errors.Is(err, errFull) || count != most+1 {
			t.Errorf("%s: %v after %d records", name, err, count)
		}
	}
}

// plainLine is a record in plain form. Its TTL is left out of the comparison: it depends on the records around.
func plainLine(r Record) string {
	return fmt.Sprintf("%s 1 IN %s %s\n", r.Name, rrset.TypeName(r.Type), r.Rdata)
}

// Whatever is read can be written in plain form, and is the same when it is read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		start + "www 300 A 192.0.2.1\n", "$TTL 1h\n$ORIGIN x\n", "$GENERATE 1-2 a${0,3,n}$ 1 TXT \"$ \\\"x\\\"\"\n", "a 1 TXT (\n\"\\\"\" ;\n)x", "$INCLUDE zone\n", "\\", "\"", "a 1 CAA 0 issue \"\\\\\"\n",
		"a 1 TXT \\# 3 026162\nb NAPTR 1 1 u x \"!^(.*)$!\\\\1!i\" .\n", "\"q\\\"\" 1 PTR \\000.\\@.\n c SRV 1 2 3 @\n", "a [AGE:1] 1 MX 1 A\r\n\tAAAA ::1.2.3.4\r", "@ 0s5 NS b(\n) ;\nb 7 A 1.2.3.4\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var lines []string
		err := Read("example.com.", "zone", text, nil, func(r Record) error {
			if r.Place.Line < 1 || r.Place.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%s does not exist", r.Place)
			}
			if r.Rdata != "" && r.Type != dns.TypeSOA {
				lines = append(lines, plainLine(r))
			}
			if len(lines) > 1000 {
				return errors.New("enough")
			}
			return nil
		})
		if err != nil {
			return
		}
		var again []string
		err = Read("example.com.", "plain", strings.Join(lines, ""), nil, func(r Record) error {
			again = append(again, plainLine(r))
			return nil
		})
		slices.Sort(lines)
		slices.Sort(again)
		if d := cmp.Diff(lines, again); err != nil || d != "" {
			t.Errorf("%v; once (-) and again (+):\n%s", err, d)
		}
	})
}
