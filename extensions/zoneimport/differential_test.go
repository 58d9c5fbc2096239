package zoneimport

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/masterfile"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

var (
	zoneFiles = flag.Int("zone-files", 0, "`number` of zone files that TestManyZoneFiles compares with BIND")
	zoneSeed  = flag.Uint64("zone-seed", 1, "`seed` of the first zone file")
)

// A zone file means what BIND says it means.
func TestZoneFilesLikeBIND(t *testing.T) { compareWithBIND(t, *zoneSeed, 300) }

// The same for more files, with -zone-files.
func TestManyZoneFiles(t *testing.T) {
	if *zoneFiles == 0 {
		t.Skip("it compares as many files as -zone-files says")
	}
	compareWithBIND(t, *zoneSeed, *zoneFiles)
}

// compareWithBIND reads random zone files with named-compilezone and as the import does. What BIND reads has to be the same here, or
// listed; what BIND refuses has to be refused, or listed.
func compareWithBIND(t *testing.T, first uint64, number int) {
	judge, err := exec.LookPath("named-compilezone")
	if err != nil {
		t.Fatal("this test needs named-compilezone: `apt-get install bind9-utils`")
	}
	var next, accepted atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			dir := t.TempDir()
			for i := next.Add(1) - 1; i < uint64(number) && !t.Failed(); i = next.Add(1) - 1 {
				files := generateZone(first + i)
				problem, refused := compareFiles(t, judge, dir, files)
				if problem != "" {
					files = shrinkFiles(files, func(smaller map[string]string) bool {
						again, _ := compareFiles(t, judge, dir, smaller)
						return kindOf(again) == kindOf(problem)
					})
					problem, _ = compareFiles(t, judge, dir, files)
					t.Errorf("seed %d: %s\n%s", first+i, problem, printFiles(files))
				}
				if !refused {
					accepted.Add(1)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d files, of which BIND reads %d", number, accepted.Load())
	if accepted.Load() < uint64(number)/2 && !t.Failed() {
		t.Errorf("BIND reads only %d of %d files: the generator shows little", accepted.Load(), number)
	}
}

func kindOf(problem string) string {
	kind, _, _ := strings.Cut(problem, ":")
	return kind
}

// compareFiles returns what is wrong, and whether BIND refuses the files.
func compareFiles(t *testing.T, judge, dir string, files map[string]string) (problem string, refused bool) {
	writeFiles(t, dir, files)
	plain, complaint := compileZone(t, judge, dir)
	got, report, err := readContent(files["zone"], dir)
	if complaint != "" {
		if err == nil && len(report.all) == 0 && got.aged == 0 {
			return "BIND refuses the zone, and it is imported without a word: " + complaint, true
		}
		return "", true
	}
	if err != nil {
		return fmt.Sprintf("BIND reads the zone, and it is refused: %v", err), false
	}
	if problem := compareContent(got, report, parsePlain(t, plain)); problem != "" {
		return "otherwise than BIND reads it: " + problem, false
	}
	got, report, err = readContent(plain, dir)
	if err != nil {
		return fmt.Sprintf("BIND's plain form is refused: %v", err), false
	}
	if problem := compareContent(got, report, parsePlain(t, plain)); problem != "" {
		return "BIND's plain form is read otherwise: " + problem, false
	}
	return "", false
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		writeTest(t, name, text)
	}
}

// compileZone returns a zone as BIND reads it, or why it does not.
func compileZone(t *testing.T, judge, dir string) (plain, complaint string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), judge, "-i", "none", "-k", "ignore", "-n", "ignore", "-r", "ignore", "-m", "ignore", "-M", "ignore", "-S", "ignore", "-T", "ignore",
		"-s", "full", "-f", "text", "-F", "text", "-o", "plain", "example.com", "zone")
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return "", fmt.Sprintf("%v: %s", err, output.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), ""
}

// readContent reads a zone as the command does, up to what it lists.
func readContent(text, dir string) (*contentReader, *differenceReport, error) {
	report := &differenceReport{}
	r := newContentReader("example.com.", wire.Limits{Records: 100_000, Bytes: 64 << 20}, report, func(int) {})
	if err := r.readZoneFile(strings.NewReader(text), stdinName, dir); err != nil {
		return nil, nil, err
	}
	content, err := r.finish()
	if err != nil {
		return nil, nil, err
	}
	kept := *content
	kept.sets = slices.Clone(content.sets)
	if err := (&manifestBuilder{content: &kept, report: report}).build(); err != nil {
		return nil, nil, err
	}
	return r, report, nil
}

// parsePlain reads BIND's plain form: a line "owner TTL class type data" for each record. Data that package rrset does not take
// stays as it is.
func parsePlain(t *testing.T, text string) map[rrset.Key]rrset.RRset {
	t.Helper()
	zone := map[rrset.Key]rrset.RRset{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, ";") { // when a signature ends
			continue
		}
		name, err := rrset.CanonicalName(fields[0])
		rrtype, known := rrset.ParseType(fields[3])
		ttl, errTTL := strconv.ParseUint(fields[1], 10, 32)
		if err != nil || errTTL != nil || !known {
			t.Fatalf("BIND writes %q", line)
		}
		key, data := rrset.Key{Name: name, Type: rrtype}, ""
		if masterfile.ReadsRdata(rrtype) {
			rest := line
			for _, field := range fields[:4] {
				_, rest, _ = strings.Cut(rest, field)
			}
			if data, err = rrset.Parse(key, strings.TrimSpace(rest)); err != nil {
				data = rest
			}
		}
		if rrtype == dns.TypeSOA || !rrset.IsServerMaintained(rrtype) {
			spelling := zone[key].Spelling
			zone[key] = rrset.New(key, uint32(ttl), append(zone[key].Rdata, data)...)
			if spelled, err := rrset.SpelledName(fields[0]); err == nil && spelling == nil {
				spelling = &rrset.Spelling{Name: spelled, Rdata: map[string]string{}}
			}
			if host, named := rrset.HostOf(rrtype, data); named {
				if spelled, err := rrset.SpelledName(fields[len(fields)-1]); err == nil {
					spelling.Rdata[data] = strings.TrimSuffix(data, host) + spelled
				}
			}
			set := zone[key]
			set.Spelling = spelling
			zone[key] = set
		}
	}
	return zone
}

// mayBeLeftOut are the reasons for which data of generated files that BIND reads cannot be declared.
var mayBeLeftOut = regexp.MustCompile(`^(the delegation of .* hides it|the DNAME at .* hides it|its name is outside the zone` +
	`|.*"\." is the root of DNS and no host|.* is not delegated: a DS stands beside` +
	`|CAA rdata .*: tag "averyveryverylongtag" is not)`)

// compareContent returns the first RRset that is not as BIND has it and is not listed.
func compareContent(got *contentReader, report *differenceReport, want map[rrset.Key]rrset.RRset) string {
	have := map[rrset.Key]rrset.RRset{}
	for _, set := range got.sets {
		have[set.Key] = set.RRset
	}
	soa := rrset.Key{Name: "example.com.", Type: dns.TypeSOA}
	have[soa] = rrset.New(soa, got.soa.TTL, got.soa.Rdata())
	listed := map[rrset.Key]bool{}
	for _, d := range report.all {
		listed[d.key] = true
		if reason, leftOut := strings.CutPrefix(d.text, "left out: "); leftOut && !mayBeLeftOut.MatchString(reason) {
			return fmt.Sprintf("%s is left out, and nothing keeps it from being declared: %s", d.key, reason)
		}
	}
	keys := slices.SortedFunc(maps.Keys(want), rrset.Key.Compare)
	for _, key := range append(keys, slices.SortedFunc(maps.Keys(have), rrset.Key.Compare)...) {
		w, h := want[key], have[key]
		left := slices.DeleteFunc(slices.Clone(h.Rdata), func(data string) bool { return slices.Contains(w.Rdata, data) })
		if listed[key] && len(left) == 0 && (h.TTL == w.TTL || len(h.Rdata) == 0) {
			continue // What is missing is listed.
		}
		if key != soa && len(h.Rdata) > 0 && len(w.Rdata) > 0 && w.SpelledName() != h.SpelledName() {
			return fmt.Sprintf("BIND spells %s as %s, read is %s", key, w.SpelledName(), h.SpelledName())
		}
		for _, data := range h.Rdata {
			if spelled := w.SpelledRdata(data); key != soa && spelled != h.SpelledRdata(data) {
				return fmt.Sprintf("BIND spells data of %s as %s, read is %s", key, spelled, h.SpelledRdata(data))
			}
		}
		if !w.Equal(h) {
			return fmt.Sprintf("BIND has %s, read is %s (listed: %v)", w, h, listed[key])
		}
	}
	return ""
}

// shrinkFiles removes lines for as long as the files fail in the same way.
func shrinkFiles(files map[string]string, fails func(map[string]string) bool) map[string]string {
	for again := true; again; {
		again = false
		for _, name := range slices.Sorted(maps.Keys(files)) {
			lines := strings.SplitAfter(files[name], "\n")
			for i := len(lines) - 1; i >= 0; i-- {
				smaller := maps.Clone(files)
				smaller[name] = strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
				if lines[i] != "" && fails(smaller) {
					files, lines, again = smaller, slices.Delete(lines, i, i+1), true
				}
			}
		}
	}
	return files
}

func printFiles(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] != "" {
			fmt.Fprintf(&b, "--- %q\n%s\n%q\n", name, files[name], files[name])
		}
	}
	return b.String()
}
