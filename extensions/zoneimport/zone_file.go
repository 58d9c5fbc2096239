package zoneimport

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/masterfile"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
)

// stdinName is the name that stands for standard input.
const stdinName = "-"

// readZoneFile reads a zone file (RFC 1035 section 5) as BIND does.
func (r *contentReader) readZoneFile(stdin io.Reader, name, includeFrom string) error {
	text, err := readZoneText(stdin, name, r.limits.Bytes)
	if err != nil {
		return err
	}
	if name == stdinName {
		name = "<stdin>"
	}
	var open masterfile.OpenFunc
	if includeFrom != "" {
		folder, err := openIncludeFolder(includeFrom, r.limits.Bytes-int64(len(text)))
		if err != nil {
			return err
		}
		defer folder.root.Close()
		open = folder.open
	}
	err = masterfile.Read(r.name, name, text, open, r.addParsed)
	if wrong, ok := errors.AsType[*masterfile.Error](err); ok {
		return describeFileError(wrong, r.name, name)
	}
	return err
}

// addParsed takes a record of a file.
func (r *contentReader) addParsed(record masterfile.Record) error {
	place := recordPlace{record.Place.File, record.Place.Line}
	if record.Aged {
		r.aged++
	}
	switch {
	case record.Class != 0:
		return r.leaveOut(place, record.Key, fmt.Sprintf("its class is %s, and zones here have class IN", dns.Class(record.Class)))
	case record.Problem != "":
		if set := r.found[record.Key]; set != nil {
			set.follow(record.Run, record.TTL)
		}
		return r.leaveOut(place, record.Key, record.Problem)
	case record.Type == dns.TypeSOA && rrset.IsSubdomain(record.Name, r.name):
		soa, err := rrset.ParseSOA(record.Rdata)
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		soa.TTL = record.TTL
		return r.addSOA(soa, place)
	}
	r.run = record.Run
	err := r.addRecord(record.Key, record.TTL, record.Rdata, place)
	if set := r.found[record.Key]; err == nil && set != nil {
		set.spell(record)
	}
	return err
}

// leaveOut reports a record that was read and cannot be in the manifests.
func (r *contentReader) leaveOut(place recordPlace, key rrset.Key, why string) error {
	if err := r.countRecord(len(key.Name) + len(why)); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	r.report.leaveOut(place, key, why)
	return nil
}

// maxErrorText bounds what an error quotes, in bytes.
const maxErrorText = 1000

// describeFileError returns what is wrong with a file, where, and what to do.
func describeFileError(wrong *masterfile.Error, zone, file string) error {
	remedy := fmt.Sprintf("correct the line; named-checkzone %s %s says what BIND makes of the file", zone, strings.Replace(file, "<stdin>", stdinName, 1))
	if errors.Is(wrong, masterfile.ErrNoInclude) {
		remedy = "name the folder that it may read from with --include-from"
	}
	text := manifest.Printable(wrong.Error())
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return fmt.Errorf("%s; %s", text, remedy)
}

// readZoneText reads a file of limited size.
func readZoneText(stdin io.Reader, name string, limit int64) (string, error) {
	if name == stdinName {
		return readLimited(stdin, "standard input", limit)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading the zone file: %w", err)
	}
	defer file.Close()
	return readLimited(file, name, limit)
}

func readLimited(r io.Reader, name string, limit int64) (string, error) {
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", name, err)
	case n > limit:
		return "", fmt.Errorf("%s has more than %d bytes, the limit of --max-zone-bytes", name, limit)
	}
	return text.String(), nil
}

// includeFolder is what $INCLUDE may read: files in one folder, links that lead out of it excepted.
type includeFolder struct {
	// path is absolute.
	path string
	root *os.Root
	// room is how many bytes may still be read.
	room int64
}

func openIncludeFolder(name string, room int64) (*includeFolder, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("--include-from: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("--include-from: %w", err)
	}
	return &includeFolder{path, root, room}, nil
}

// open reads a file. A relative name is relative to the folder, as BIND's are to its working directory. A complete one begins with
// the folder, or is that of a BIND whose root is the folder.
func (f *includeFolder) open(name string) (path, text string, err error) {
	if filepath.IsAbs(name) {
		name = filepath.Clean(name)
		if below, inside := strings.CutPrefix(name, strings.TrimSuffix(f.path, "/")+"/"); inside {
			name = below
		}
		name = strings.TrimPrefix(name, "/")
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("there is no such file in %s, which is what --include-from lets it read", f.path)
	}
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	if text, err = readLimited(file, "the zone with what it includes", f.room); err != nil {
		return "", "", err
	}
	f.room -= int64(len(text))
	return filepath.Join(f.path, name), text, nil
}
