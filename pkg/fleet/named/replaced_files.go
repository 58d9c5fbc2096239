package named

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/conffile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
)

// replacedFields are the fields of configMapRefs, by the file that each replaces.
var replacedFields = map[string]string{MainFile: "namedConf", OptionsFile: "namedConfOptions", ZonesFile: "namedConfZones"}

// ReplacementIn returns the file that a user's ConfigMap has in place of a generated one.
func ReplacementIn(configMap *corev1.ConfigMap, file string) (string, error) {
	if text, ok := configMap.Data[file]; ok {
		return text, nil
	}
	if data, ok := configMap.BinaryData[file]; ok {
		return string(data), nil
	}
	has := "it is empty"
	if names := slices.Sorted(maps.Keys(configMap.Data)); len(names) > 0 {
		const most = 5
		has = "it has " + strings.Join(names[:min(len(names), most)], ", ")
	}
	return "", fmt.Errorf("configMapRefs.%s: ConfigMap %s has no entry %q: %s", replacedFields[file], configMap.Name, file, has)
}

// maxIncludes bounds how many files are read for one configuration: they may include one another, each several times.
const maxIncludes = 32

// checkReplacements says what a user's files lack without which a server cannot be used, each with the line to add. files are all that
// there are, by name. What named itself refuses is left to named, whose words reach the pod's condition.
func (w Workload) checkReplacements(files map[string]string) error {
	replaced := w.ReplacedFiles()
	if replaced[MainFile] == "" && replaced[OptionsFile] == "" {
		return nil
	}
	r := conffileReader{files: files}
	top, err := r.read(MainFile)
	if err != nil {
		return nil //nolint:nilerr // named says in which line.
	}
	c := replacedConfig{reader: r, top: top, replaced: replaced, needs: neededOptions, release: w.release()}
	if most := w.mergedOptions().MaxRecordsPerType; most != nil {
		c.needs = append(slices.Clip(c.needs), neededRecords(*most))
	}
	return c.check()
}

// conffileReader reads configuration files with those that they include.
type conffileReader struct {
	files map[string]string
	// included are the files of ours that are, unknown says that others are, missing has those that the pod does not have.
	included map[string]bool
	unknown  bool
	missing  []string
	// reads counts files.
	reads int
}

func (r *conffileReader) read(file string) ([]conffile.Statement, error) {
	if r.included == nil {
		r.included = map[string]bool{}
	}
	r.included[file] = true
	if r.reads++; r.reads > maxIncludes {
		return nil, errors.New("too many files are included")
	}
	if file == ControlFile { // It is ours: what it has is known.
		return nil, nil
	}
	all, err := conffile.Parse(r.files[file])
	if err != nil {
		return nil, err
	}
	return r.expand(all)
}

// expand puts what is included in place of the statements that include it.
func (r *conffileReader) expand(all []conffile.Statement) (out []conffile.Statement, err error) {
	for _, s := range all {
		if !s.Is("include") {
			if s.Block, err = r.expand(s.Block); err != nil {
				return nil, err
			}
			out = append(out, s)
			continue
		}
		for _, file := range r.resolve(s.Word(1)) {
			included, err := r.read(file)
			if err != nil {
				return nil, err
			}
			out = append(out, included...)
		}
	}
	return out, nil
}

// resolve returns which of the files a path names, which may be a pattern. It notes a path that leads elsewhere.
func (r *conffileReader) resolve(name string) (found []string) {
	for file := range r.files {
		if ok, err := path.Match(path.Clean(name), layout.ConfigDir+"/"+file); ok && err == nil {
			found = append(found, file)
		}
	}
	slices.Sort(found)
	switch {
	case len(found) > 0, name == layout.ControlKeyFile, isKeyFile(name):
	case strings.HasPrefix(path.Clean(name), layout.ConfigDir+"/") && !strings.ContainsAny(name, "*?["):
		r.missing = append(r.missing, name)
	default:
		r.unknown = true
	}
	return found
}

// isKeyFile reports whether a path is that of a key ring in the pod.
func isKeyFile(name string) bool {
	return slices.ContainsFunc([]KeyRole{KeyUpdate, KeyTransfer}, func(role KeyRole) bool {
		return name == layout.KeyDir+"/"+string(role)+"/"+KeyClauseEntry
	})
}

// replacedConfig is a configuration of which some files are a user's.
type replacedConfig struct {
	reader conffileReader
	top    []conffile.Statement
	// replaced has the ConfigMaps, by the file that each has.
	replaced map[string]string
	needs    []neededOption
	release  releases.Release
}

// check says everything that is wrong.
func (c replacedConfig) check() error {
	return errors.Join(c.checkIncludes(), c.checkStatements(), c.checkRelease("", c.top), c.checkOptions())
}

// checkRelease names the statements in a block of which the release is known not to have them: named does not start with one.
func (c replacedConfig) checkRelease(parent string, block []conffile.Statement) error {
	var problems []error
	for _, s := range block {
		if lacks, ok := c.release.Lacks(parent, s.Word(0)); ok {
			problems = append(problems, c.problem(c.blamed(), "has the statement %s, which BIND %s does not have; %s, or set version: %q",
				lacks.Keyword, c.release, lacks.Instead, lacks.Only[0]))
		}
		problems = append(problems, c.checkRelease(s.Word(0), s.Block))
	}
	return errors.Join(problems...)
}

// problem is about one of the user's files.
func (c replacedConfig) problem(file, format string, args ...any) error {
	return fmt.Errorf("configMapRefs.%s: %s of ConfigMap %s %s", replacedFields[file], file, c.replaced[file], fmt.Sprintf(format, args...))
}

func includeLine(file string) string { return fmt.Sprintf("include %q;", layout.ConfigDir+"/"+file) }

func (c replacedConfig) checkIncludes() error {
	var problems []error
	if c.replaced[MainFile] != "" && !c.reader.included[ControlFile] && !c.reader.unknown {
		problems = append(problems, c.problem(MainFile,
			"does not include %s, which has the keys, the control channel and the statistics channel; add this line to it: %s", ControlFile, includeLine(ControlFile)))
	}
	for _, file := range []string{OptionsFile, ZonesFile} {
		if c.replaced[file] != "" && !c.reader.included[file] && !c.reader.unknown {
			problems = append(problems, c.problem(file, "is not included; add this line to the named.conf of ConfigMap %s: %s", c.replaced[MainFile], includeLine(file)))
		}
	}
	for _, name := range c.reader.missing {
		problems = append(problems, c.problem(c.blamed(), "includes %s, which pods do not have; remove this line from it: include %q; (all keys are in %s)",
			name, name, ControlFile))
	}
	return errors.Join(problems...)
}

// blamed returns the file that is named where either may be meant: the one with the options, if it is a user's.
func (c replacedConfig) blamed() string {
	if c.replaced[OptionsFile] != "" && c.reader.included[OptionsFile] {
		return OptionsFile
	}
	return MainFile
}

// checkStatements refuses what a server can have only once and has already, and views: zones are added to the one that is there without any.
func (c replacedConfig) checkStatements() error {
	var problems []error
	if c.has("logging") && c.reader.included[ControlFile] {
		problems = append(problems, c.problem(c.blamed(), "has a logging statement, and named takes only one; remove it: %s has one", ControlFile))
	}
	if c.has("view") {
		problems = append(problems, c.problem(c.blamed(), "has a view, and zones are added to the servers without one; take its statements out of the view"))
	}
	return errors.Join(problems...)
}

func (c replacedConfig) has(keyword string) bool {
	return slices.ContainsFunc(c.top, func(s conffile.Statement) bool { return s.Is(keyword) })
}

// checkOptions looks for what the sidecar and the Service rely on.
func (c replacedConfig) checkOptions() error {
	if c.replaced[OptionsFile] == "" && c.reader.included[OptionsFile] {
		return nil // They are ours.
	}
	var options []conffile.Statement
	for _, s := range c.top {
		if s.Is("options") {
			options = append(options, s.Block...)
		}
	}
	if !c.has("options") && !c.reader.included[OptionsFile] && !c.reader.unknown {
		return c.problem(MainFile, "has no options and does not include %s; add this line to it: %s", OptionsFile, includeLine(OptionsFile))
	}
	var problems []error
	for _, need := range c.needs {
		is, isSet := need.find(options)
		if isSet && !is || !isSet && !need.isDefault && !c.reader.unknown {
			problems = append(problems, c.problem(c.blamed(), "lacks an option without which %s; have this line in its options { … }: %s", need.why, need.line))
		}
	}
	return errors.Join(problems...)
}

// neededOption is an option without which a server cannot be used.
type neededOption struct {
	line, why string
	// isDefault: named does it without the option.
	isDefault bool
	// find reports whether the options have it, and whether they say anything about it.
	find func([]conffile.Statement) (is, isSet bool)
}

var neededOptions = []neededOption{
	{line: "allow-new-zones yes;", why: "no zone can be added", find: isSwitchedOn("allow-new-zones")},
	{line: "zone-statistics full;", why: "nobody knows which zones the server has", isDefault: true, find: isSwitchedOn("zone-statistics")},
	{line: fmt.Sprintf("listen-on port %d { any; };", serving.Port), why: fmt.Sprintf("named does not listen on port %d, where the Service and the probes expect it", serving.Port), find: listens},
}

// neededRecords is the option for a number of records of one name and type, or for more.
func neededRecords(most int32) neededOption {
	return neededOption{
		line: fmt.Sprintf("max-records-per-type %d;", most), why: "named takes fewer records of one name and type than maxRecordsPerType says",
		find: func(options []conffile.Statement) (is, isSet bool) {
			for _, s := range options {
				if s.Is("max-records-per-type") {
					n, err := strconv.Atoi(s.Word(1))
					isSet, is = true, err == nil && (n == 0 || n >= int(most))
				}
			}
			return is, isSet
		},
	}
}

// isSwitchedOn finds a switch in the options. What is neither no nor none, as named writes them, is on.
func isSwitchedOn(name string) func([]conffile.Statement) (is, isSet bool) {
	return func(options []conffile.Statement) (is, isSet bool) {
		for _, s := range options {
			if s.Is(name) {
				isSet, is = true, !slices.Contains([]string{"no", "false", "0", "none", ""}, strings.ToLower(s.Word(1)))
			}
		}
		return is, isSet
	}
}

// listens reports whether the options have named listen on Port: over IPv4 it listens everywhere unless they say where.
func listens(options []conffile.Statement) (is, isSet bool) {
	standard, everywhere := "53", true
	for _, s := range options {
		if s.Is("port") {
			standard, isSet = s.Word(1), true
		}
		everywhere = everywhere && !s.Is("listen-on")
	}
	is = everywhere && standard == strconv.Itoa(serving.Port)
	for _, s := range options {
		if !s.Is("listen-on") && !s.Is("listen-on-v6") {
			continue
		}
		at := standard
		if n := slices.Index(s.Words, "port"); n > 0 {
			at = s.Word(n + 1)
		}
		isNone := len(s.Block) == 1 && s.Block[0].Is("none")
		isSet, is = true, is || at == strconv.Itoa(serving.Port) && !isNone
	}
	return is, isSet
}

// withReplacements returns the configuration files as pods have them.
func (w Workload) withReplacements(files map[string]string) map[string]string {
	files = maps.Clone(files)
	maps.Copy(files, w.Replacements)
	return files
}
