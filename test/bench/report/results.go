package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Report is what benchmarks said in one session on one machine.
type Report struct {
	Machine Machine `json:"machine"`
	// Results are in the order in which they came first.
	Results []Result `json:"results"`
}

// Machine is where a report was made.
type Machine struct {
	Date       string `json:"date"`
	Processors int    `json:"processors"`
	// Memory in GiB.
	Memory   int               `json:"memory"`
	Kernel   string            `json:"kernel"`
	Versions map[string]string `json:"versions"`
}

// String returns date, hardware and versions.
func (m Machine) String() string {
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		versions = append(versions, name+" "+m.Versions[name])
	}
	return fmt.Sprintf("%s, %d processors, %d GiB, Linux %s; %s", m.Date, m.Processors, m.Memory, m.Kernel, strings.Join(versions, ", "))
}

// Result is what one benchmark said, run after run.
type Result struct {
	Name string `json:"name"`
	// Reference is what the reference is.
	Reference string `json:"reference"`
	Runs      []Run  `json:"runs"`
}

// Run is one run of a benchmark.
type Run struct {
	Ratio float64 `json:"ratio"`
	// Ours and Reference are figures with their units.
	Ours      string `json:"ours"`
	Reference string `json:"reference"`
	// Load is the load average of the minute before the run.
	Load float64 `json:"load"`
}

// median returns the run with the median of the ratios, the lower one of two.
func (r *Result) median() Run {
	sorted := slices.SortedFunc(slices.Values(r.Runs), func(a, b Run) int { return cmp.Compare(a.Ratio, b.Ratio) })
	return sorted[(len(sorted)-1)/2]
}

// spread returns the least and the greatest ratio.
func (r *Result) spread() (least, greatest float64) {
	least, greatest = r.Runs[0].Ratio, r.Runs[0].Ratio
	for _, run := range r.Runs {
		least, greatest = min(least, run.Ratio), max(greatest, run.Ratio)
	}
	return least, greatest
}

func (r *Result) load() float64 {
	load := 0.
	for _, run := range r.Runs {
		load = max(load, run.Load)
	}
	return load
}

// find returns a result by name, nil if there is none.
func (r *Report) find(name string) *Result {
	i := slices.IndexFunc(r.Results, func(s Result) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Results[i]
}

// resultLine matches the last lines of a benchmark, as in docs/benchmarks.md.
var resultLine = regexp.MustCompile(`^\s*RESULT (\S+) ratio=(\S+) ours=(.+?) reference=(.+?) \((.*)\)$`)

// addOutput adds the results in a benchmark's output, which it copies, and returns how many they are.
func (r *Report) addOutput(output io.Reader, load float64, copyTo io.Writer) (count int, err error) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(copyTo, lines.Text())
		match := resultLine.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		ratio, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return count, fmt.Errorf("%q has no ratio: %w", lines.Text(), err)
		}
		result := r.find(match[1])
		if result == nil {
			r.Results = append(r.Results, Result{Name: match[1]})
			result = &r.Results[len(r.Results)-1]
		}
		result.Reference = match[5]
		result.Runs = append(result.Runs, Run{Ratio: ratio, Ours: match[3], Reference: match[4], Load: load})
		count++
	}
	return count, lines.Err()
}

func readReport(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no file of results: %w", file, err)
	}
	return r, nil
}

func (r *Report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
