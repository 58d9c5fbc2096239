// Package masterfile reads zone files as BIND reads them (RFC 1035 section 5, RFC 2308 section 4, RFC 3597 section 5, and BIND's
// $GENERATE): which TTL, owner and origin a record has, which words are one string, and which lines are wrong.
//
//	text ──lexer──► entry: words with their line ──reader──► owner, TTL, class, type ──readRdata──► Record
//	                         ▲            └─ $ORIGIN, $TTL, $INCLUDE, $DATE ─┐
//	                         └────────────── state of file and zone ◄────────┘        $GENERATE ──► many Records
//
// The rules are those of lib/dns/master.c and lib/isc/lex.c of BIND 9.18; package zoneimport compares with named-compilezone. Memory
// is bounded by the text, and by what the caller keeps: records are handed over owner by owner, and of one owner's no more than
// 64 KiB of data at a time, as BIND does it.
package masterfile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Place is where an entry begins.
type Place struct {
	File string
	Line int
}

// String has the form file:line.
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Record is one resource record of a zone file.
type Record struct {
	rrset.Key
	TTL uint32
	// Rdata is in the canonical form of package rrset, empty if ReadsRdata(Type) is false.
	Rdata string
	// Owner and Spelled are the name and the rdata in the upper and lower case of the file; empty where that is the canonical form.
	Owner, Spelled string
	Place          Place
	// Run numbers what BIND adds to the zone in one step. Of an RRset with different TTLs, it serves the first of the last run.
	Run int
	// Class is that of a record which is not of class IN, otherwise 0.
	Class uint16
	// Problem says why there is no Rdata although BIND reads it.
	Problem string
	// Aged is true if a time stamp of Microsoft's DNS server stood before the TTL, which BIND does not read.
	Aged bool
}

// Error is what is wrong with a file.
type Error struct {
	Place Place
	Err   error
}

// Error has the form file:line: cause.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Place, e.Err) }

// Unwrap gives errors.Is and errors.As the cause.
func (e *Error) Unwrap() error { return e.Err }

// OpenFunc returns the text of a file that an $INCLUDE names, and the file's name for places.
type OpenFunc func(name string) (path, text string, err error)

// ErrNoInclude says that a file has an $INCLUDE and no other file may be read.
var ErrNoInclude = errors.New("$INCLUDE reads other files, which is not allowed")

// markErrors are what is wrong with a file that begins with a byte order mark, as Windows saves files.
var (
	errUTF16   = errors.New("the file is in UTF-16: save it as UTF-8 without a byte order mark")
	markErrors = map[string]error{
		"\xef\xbb\xbf": errors.New("the file begins with a byte order mark: save it as UTF-8 without one"), "\xff\xfe": errUTF16, "\xfe\xff": errUTF16,
	}
)

var errNoTTL = errors.New("the record has no TTL, and none is known: begin the file with a $TTL")

// Read hands the records of a zone to add, in the order in which BIND adds them. The zone's name is canonical, path is the file's
// name for places, and open may be nil. It ends with the first error, which is an *Error or one of add.
func Read(zone, path, text string, open OpenFunc, add func(Record) error) error {
	r := &reader{zone: zone, open: open, add: add}
	origin, err := parseName(zone, name{".", 1})
	if err != nil {
		return &Error{Place{path, 1}, err}
	}
	for mark, wrong := range markErrors {
		if strings.HasPrefix(text, mark) {
			return &Error{Place{path, 1}, wrong}
		}
	}
	r.files = []*file{{lexer: newLexer(text), path: path, origin: origin}}
	for len(r.files) > 0 {
		if err := r.readEntry(); err != nil {
			return err
		}
	}
	return nil
}

// reader is the state of BIND's load_text.
type reader struct {
	zone  string
	open  OpenFunc
	add   func(Record) error
	files []*file
	// ttl is the last TTL, defaultTTL that of $TTL or of an SOA's minimum.
	ttl, defaultTTL           uint32
	ttlKnown, defaultTTLKnown bool
	// dated is true after a $DATE.
	dated bool
	// current and glue are records that are not handed over yet: of an owner, and of a name server that it delegates to.
	current, glue batch
	runs          int
	// stopped is the error of add.
	stopped error
}

// file is the zone file, or one that is being included.
type file struct {
	*lexer
	path   string
	origin name
	// owner is the last one, and glue that of the addresses of a name server between records of owner.
	owner, glue *name
}

func (r *reader) file() *file { return r.files[len(r.files)-1] }

// readEntry reads an entry, or leaves a file that has ended.
func (r *reader) readEntry() error {
	f := r.file()
	if f.ended() {
		r.files = r.files[:len(r.files)-1]
		return r.commit()
	}
	e, err := f.next()
	if err == nil && len(e.words) > 0 {
		err = r.takeEntry(e, Place{f.path, e.line})
	}
	switch {
	case r.stopped != nil:
		return r.stopped
	case err != nil:
		return &Error{Place{f.path, e.line}, err}
	}
	return nil
}

func (r *reader) takeEntry(e entry, place Place) error {
	if e.inherits {
		return r.record(e.words, place)
	}
	first := e.words[0].value()
	if !strings.HasPrefix(first, "$") {
		return r.ownedRecord(first, e.words[1:], place)
	}
	directive := strings.ToUpper(first)
	args := e.words[1:]
	if directive == "$INCLUDE" {
		return r.include(args, e.unended)
	}
	if e.unended {
		return fmt.Errorf("the file ends within the line of a %s; add a line end", directive)
	}
	switch directive {
	case "$GENERATE":
		return r.generate(args, place)
	case "$TTL", "$ORIGIN", "$DATE":
	default:
		return fmt.Errorf("there is no directive %q", first)
	}
	if len(args) != 1 || args[0].quoted {
		return fmt.Errorf("%s takes one value, without quotes", directive)
	}
	return r.setState(directive, args[0].text)
}

// setState follows $TTL (RFC 2308 section 4), $ORIGIN, and BIND's $DATE, which has no effect on a zone.
func (r *reader) setState(directive, value string) (err error) {
	switch directive {
	case "$TTL":
		ttl, ok := parseTTL(value)
		if !ok {
			return fmt.Errorf("$TTL %q is not a time in seconds, or as 1h30m", value)
		}
		r.ttl = limitTTL(ttl)
		r.defaultTTL, r.defaultTTLKnown = r.ttl, true
	case "$ORIGIN":
		r.file().origin, err = parseName(value, r.file().origin)
	case "$DATE":
		const last = 2106 // The year in which 32 bits of seconds end.
		date, errDate := time.Parse("20060102150405", value)
		if errDate != nil || date.Year() < 1970 || date.Year() >= last {
			return fmt.Errorf("$DATE %q is not a date as 20260131235959", value)
		}
		r.dated = true
	}
	return err
}

// maxDepth is how many files may include each other.
const maxDepth = 32

// include opens a file. It begins with the TTLs and the owner of the one that includes it, and leaves its TTLs behind.
func (r *reader) include(args []word, unended bool) error {
	f := r.file()
	origin, err := f.origin, error(nil)
	switch {
	case len(args) == 0 || len(args) > 2 || len(args) == 2 && args[1].quoted:
		return errors.New("$INCLUDE takes the name of a file, in quotes if it has blanks, and may take an origin")
	case len(args) == 2 && unended:
		return errors.New("the file ends within the line of an $INCLUDE; add a line end")
	case len(args) == 2:
		origin, err = parseName(args[1].text, f.origin)
	}
	switch {
	case err != nil:
		return err
	case r.open == nil:
		return ErrNoInclude
	case r.dated:
		return errors.New("BIND takes no $INCLUDE behind a $DATE; remove the $DATE, which has no effect on a zone")
	case len(r.files) == maxDepth:
		return fmt.Errorf("%d files include each other, one in the other: does one include itself?", maxDepth)
	}
	if err := r.commit(); err != nil {
		return err
	}
	named := args[0].value()
	path, text, err := r.open(named)
	if err != nil {
		return fmt.Errorf("$INCLUDE %q: %w", named, err)
	}
	owner := f.owner
	if f.glue != nil {
		owner = f.glue
	}
	included := &file{lexer: newLexer(text), path: path, origin: origin, owner: owner}
	included.middle = unended
	r.files = append(r.files, included)
	return nil
}

// ownedRecord takes a record that states its owner.
func (r *reader) ownedRecord(owner string, words []word, place Place) error {
	f := r.file()
	n, err := parseName(owner, f.origin)
	if err != nil {
		return err
	}
	if f.glue != nil && f.glue.text != n.text {
		f.glue = nil
		if err := r.glue.flush(r); err != nil {
			return err
		}
	}
	switch {
	case f.glue != nil, f.owner != nil && f.owner.text == n.text:
	case r.current.delegatesTo(n.canonical()):
		f.glue = &n
	default:
		f.owner = &n
		if err := r.current.flush(r); err != nil {
			return err
		}
	}
	return r.record(words, place)
}

// record takes a record of the present owner.
func (r *reader) record(words []word, place Place) error {
	f := r.file()
	owner, list := f.owner, &r.current
	if f.glue != nil {
		owner, list = f.glue, &r.glue
	}
	if owner == nil {
		return errors.New("the line begins with a blank, and there is no owner before it")
	}
	h, words, err := parseHeader(words)
	if err != nil {
		return err
	}
	if err := checkType(h.rrtype); err != nil && h.foreign == "" {
		return err
	}
	known := r.setTTL(h)
	record := Record{Key: rrset.Key{Name: owner.canonical(), Type: h.rrtype}, Owner: owner.otherThanCanonical(), Place: place, Class: foreignClass(h.class), Aged: h.aged}
	if record.Class != 0 {
		record.Run = r.nextRun()
		return r.emit(record)
	}
	data, err := h.readRdata(words, f.origin)
	if err != nil {
		return err
	}
	record.Rdata, record.Spelled, record.Problem = data.text, data.spelled, data.problem
	switch {
	case !r.inZone(record.Key.Name): // It has no effect on what follows.
		record.Run = r.nextRun()
		return r.emit(record)
	case h.rrtype == dns.TypeSOA && record.Key.Name == r.zone+r.zone:
		return fmt.Errorf("the SOA record belongs to %s: a dot is missing at the end of its name", record.Key.Name)
	case h.rrtype == dns.TypeSOA && record.Key.Name != r.zone:
		return fmt.Errorf("the SOA record belongs to %s, and the zone is %s", record.Key.Name, r.zone)
	case h.rrtype == dns.TypeSOA && !known:
		if err := r.defaultToMinimum(data.text); err != nil {
			return err
		}
	case !known:
		return errNoTTL
	}
	r.ttl = list.put(record, r.ttl, data, words)
	if r.current.size+r.glue.size > maxBatch || len(list.records) > maxBatch {
		return r.commit()
	}
	return nil
}

// defaultToMinimum takes the default TTL from an SOA record.
func (r *reader) defaultToMinimum(rdata string) error {
	soa, err := rrset.ParseSOA(rdata)
	r.ttl = limitTTL(soa.Minimum)
	r.defaultTTL, r.defaultTTLKnown = r.ttl, true
	return err
}

// setTTL sets the TTL of a record: the stated one, the default, or the last one. It reports whether there is any.
func (r *reader) setTTL(h header) bool {
	if h.explicit {
		r.ttl, r.ttlKnown = limitTTL(h.ttl), true
	} else if r.defaultTTLKnown {
		r.ttl = r.defaultTTL
	}
	return r.ttlKnown || r.defaultTTLKnown
}

// checkType refuses the types that no zone has.
func checkType(t uint16) error {
	if t == dns.TypeNone || t == dns.TypeOPT || t == dns.TypeMD || t == dns.TypeMF || t >= 128 && t <= 255 {
		return fmt.Errorf("no zone has records of type %s", rrset.TypeName(t))
	}
	return nil
}

func foreignClass(class uint16) uint16 {
	if class == dns.ClassINET {
		return 0
	}
	return class
}

func (r *reader) inZone(name string) bool { return rrset.IsSubdomain(name, r.zone) }

func (r *reader) nextRun() int {
	r.runs++
	return r.runs
}

func (r *reader) emit(record Record) error {
	r.stopped = r.add(record)
	return r.stopped
}

// commit hands over all records that have been read.
func (r *reader) commit() error {
	if err := r.current.flush(r); err != nil {
		return err
	}
	return r.glue.flush(r)
}
