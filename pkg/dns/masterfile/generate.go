package masterfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// generation is a $GENERATE: it stands for one record for each number of a range.
type generation struct {
	first, last, step int64
	owner, data       pattern
	header
}

// rangeForm is first-last[/step]. BIND takes what follows a complete range for nothing.
var rangeForm = regexp.MustCompile(`^\+?([0-9]+)-\+?([0-9]+)(?:/\+?([0-9]+)|[^0-9/]|$)`)

// parseGeneration reads the words behind $GENERATE: range, owner, [class] [TTL] [class] type, and the data as one word.
func parseGeneration(words []word) (g generation, err error) {
	if len(words) < 4 || words[0].quoted || words[1].quoted {
		return g, errors.New("$GENERATE takes a range, an owner, a type, and the data in quotes if it has blanks")
	}
	if g.first, g.last, g.step, err = parseRange(words[0].text); err != nil {
		return g, err
	}
	if g.owner, err = parsePattern(words[1].text); err != nil {
		return g, err
	}
	h, rest, err := parseHeader(words[2:])
	switch {
	case err != nil:
		return g, err
	case h.rrtype == dns.TypeSOA:
		return g, errors.New("a zone has one SOA record, and $GENERATE makes many")
	case h.aged:
		return g, errors.New("$GENERATE takes no [AGE:…]")
	case len(rest) == 0:
		return g, errors.New("$GENERATE lacks the data")
	case len(rest) > 1:
		return g, fmt.Errorf("%q is more than $GENERATE takes; put data that has blanks in quotes", rest[1].text)
	case rest[0].nested:
		return g, errors.New("the data of a $GENERATE is in parentheses, which BIND does not read; put it in quotes")
	}
	g.header = h
	g.data, err = parsePattern(rest[0].value())
	return g, err
}

func parseRange(text string) (first, last, step int64, err error) {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, 0, fmt.Errorf("%q is not a range of $GENERATE, as 1-10 or 0-254/2", text)
	}
	m[3] = cmp.Or(m[3], "1")
	numbers := make([]int64, 0, 3)
	for _, digits := range m[1:4] {
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("the range %q has a number above %d", text, math.MaxInt32)
		}
		numbers = append(numbers, n)
	}
	first, last, step = numbers[0], numbers[1], numbers[2]
	if last < first || step < 1 {
		return 0, 0, 0, fmt.Errorf("the range %q does not go upwards", text)
	}
	return first, last, step, nil
}

// pattern is a text with places for the number.
type pattern []piece

// piece is a text, or the number in a format.
type piece struct {
	text string
	// base is one of d, o, x, X, n and N; 0 in a text.
	base   byte
	offset int64
	width  int
}

// pieceForm is the format of a number: {offset[,width[,base]]}.
var pieceForm = regexp.MustCompile(`^\{([+-]?[0-9]+)(?:,\+?([0-9]+)(?:,([doxXnN]))?)?\}`)

// maxNumber is how many characters a number may have.
const maxNumber = 127

// parsePattern reads a text in which $ stands for the number. $$ and \$ are the character itself. BIND keeps the offset of a
// format for all $ behind it.
func parsePattern(text string) (p pattern, err error) {
	plain, offset := 0, int64(0)
	add := func(end int) {
		if end > plain {
			p = append(p, piece{text: text[plain:end]})
		}
	}
	for i := 0; i < len(text); {
		if text[i] == '\\' {
			i = min(i+2, len(text))
			continue
		}
		if text[i] != '$' {
			i++
			continue
		}
		if strings.HasPrefix(text[i:], "$$") {
			add(i + 1)
			i += 2
			plain = i
			continue
		}
		add(i)
		i++
		number := piece{base: 'd', offset: offset}
		if i < len(text) && text[i] == '{' {
			m := pieceForm.FindStringSubmatch(text[i:])
			if m == nil {
				return nil, fmt.Errorf("%q has a format of $ that is not ${offset}, ${offset,width} or ${offset,width,base}, the base one of d, o, x, X, n, N", text)
			}
			if number, err = parsePiece(m); err != nil {
				return nil, err
			}
			i, offset = i+len(m[0]), number.offset
		}
		p, plain = append(p, number), i
	}
	add(len(text))
	return p, nil
}

func parsePiece(m []string) (p piece, err error) {
	p.base = 'd'
	if p.offset, err = strconv.ParseInt(m[1], 10, 32); err != nil {
		return p, fmt.Errorf("%q has an offset of more than 31 bits", m[0])
	}
	if m[2] != "" {
		if p.width, err = strconv.Atoi(m[2]); err != nil || p.width > maxNumber {
			return p, fmt.Errorf("%q has a width above %d", m[0], maxNumber)
		}
	}
	if m[3] != "" {
		p.base = m[3][0]
	}
	return p, nil
}

// maxExpanded bounds what a pattern becomes, in bytes.
const maxExpanded = math.MaxUint16

func (p pattern) expand(i int64) (string, error) {
	var out strings.Builder
	for _, piece := range p {
		text := piece.text
		if piece.base != 0 {
			n := i + piece.offset
			if n != int64(int32(n)) { //nolint:gosec // that is the question
				return "", fmt.Errorf("the number %d of a $GENERATE has more than 31 bits", n)
			}
			if text = piece.format(int32(n)); len(text) > maxNumber { //nolint:gosec // checked above
				return "", fmt.Errorf("the number %s of a $GENERATE has more than %d characters", text, maxNumber)
			}
		}
		if out.WriteString(text); out.Len() > maxExpanded {
			return "", fmt.Errorf("a text of a $GENERATE has more than %d bytes", maxExpanded)
		}
	}
	return out.String(), nil
}

func (p piece) format(n int32) string {
	bits := uint32(n) //nolint:gosec // BIND writes the bits of negative numbers
	switch p.base {
	case 'o':
		return fmt.Sprintf("%0*o", p.width, bits)
	case 'x':
		return fmt.Sprintf("%0*x", p.width, bits)
	case 'X':
		return fmt.Sprintf("%0*X", p.width, bits)
	case 'n':
		return nibbles("0123456789abcdef", bits, p.width)
	case 'N':
		return nibbles("0123456789ABCDEF", bits, p.width)
	}
	return fmt.Sprintf("%0*d", p.width, n)
}

// nibbles writes hexadecimal digits from the least on with dots between them, as names in ip6.arpa have them (RFC 3596 section
// 2.5). The width counts the dots.
func nibbles(digits string, bits uint32, width int) string {
	var out []byte
	for {
		out = append(out, digits[bits&15])
		bits >>= 4
		if width--; width > 0 || bits != 0 {
			out = append(out, '.')
			width--
		}
		if width <= 0 && bits == 0 {
			return string(out)
		}
	}
}

// generate adds the records of a $GENERATE, each for itself.
func (r *reader) generate(words []word, place Place) error {
	g, err := parseGeneration(words)
	if err != nil {
		return err
	}
	if err := checkType(g.rrtype); err != nil {
		return err
	}
	if !r.setTTL(g.header) {
		return errNoTTL
	}
	for i := g.first; i <= g.last; i += g.step {
		record := Record{Key: rrset.Key{Type: g.rrtype}, TTL: r.ttl, Place: place, Run: r.nextRun()}
		if err := r.generateOne(&record, &g, i); err != nil {
			return err
		}
		if err := r.emit(record); err != nil {
			return err
		}
		if record.Class != 0 {
			return nil // All the others are left out, too.
		}
	}
	return nil
}

func (r *reader) generateOne(record *Record, g *generation, i int64) error {
	text, err := g.owner.expand(i)
	if err != nil {
		return err
	}
	origin := r.file().origin
	owner, err := parseName(text, origin)
	if err != nil {
		return err
	}
	record.Key.Name, record.Owner = owner.canonical(), owner.otherThanCanonical()
	if record.Class = foreignClass(g.class); record.Class != 0 || !r.inZone(record.Key.Name) {
		return nil
	}
	if text, err = g.data.expand(i); err != nil {
		return err
	}
	line, err := newLexer(text).next()
	if err != nil {
		return err
	}
	data, err := g.readRdata(line.words, origin)
	record.Rdata, record.Spelled, record.Problem = data.text, data.spelled, data.problem
	return err
}
