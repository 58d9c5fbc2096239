package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// lane says how often the tests of a stage run; docs/testing.md describes the lanes.
type lane string

const (
	laneCheck lane = "check" // before each commit, and in the gate
	laneGate  lane = "gate"  // before each merge
	laneAll   lane = "all"   // what takes longer than the gate has time for
)

// stage is a set of tests that run together.
type stage struct {
	name string
	lane lane
	// module is the folder of the Go module, from the repository's root. Empty is the root.
	module string
	// packages are patterns as go test takes them, from that folder.
	packages []string
	// only and without are the names of the packages' tests that belong to the stage, and of those that do not.
	only, without []string
	// buildFlags decide what go test builds, flags what the tests do.
	buildFlags, flags []string
	// cluster is the kind of tests on the cluster that KUBECONFIG names. They run from binaries that were built before, one package
	// after the other.
	cluster clusterTests
	// once is true if a failure is final.
	once bool
	// again is true if the stage runs tests of other stages once more, with other servers.
	again bool
	// environment is set for the tests. Paths in it that begin with _output are relative to the repository's root.
	environment []string
}

// clusterTests is a kind of tests on the cluster.
type clusterTests string

const (
	noCluster clusterTests = ""
	// isolated tests call kube.Isolated, and run at the same time.
	isolated clusterTests = "isolated"
	// serial tests call kube.Disruptive, and run one after the other.
	serial clusterTests = "serial"
)

// What the gate has no time for. The random tests choose their steps by a seed, but not the moments: they search for defects, they do
// not prove that there is none.
var (
	random     = []string{"TestRandomChanges"}
	demos      = []string{"TestProvidersDemo"}
	migrations = []string{"TestMigrationTakenBack", "TestMigrationOfProvider"}
	zoneFiles  = []string{"TestManyZoneFiles"}
	answers    = []string{"TestManyAnswers"}
)

// twoCores is how many isolated tests run at the same time; docs/testing.md has the measurements.
const twoCores = "-test.parallel=8"

// raced are the flags that report data races.
var raced = []string{"-race"}

// large are unit tests in which the race detector finds nothing that smaller ones would not show, and makes minutes of seconds.
var large = []string{"TestAnswersLikeDelv", "TestBombs", "TestBuilderIsBuild", "TestClusterOfAHundred", "TestFixedPointOfLargeZones", "TestHostileResponses",
	"TestIndexFollowsEventsAsIfMadeFromScratch", "TestManyServices", "TestSettingsLeaveOthers", "TestValidIsDecodable", "TestVersions", "TestWords"}

// What depends on the release of BIND, in tests that run named on loopback and in those on the cluster. Both run with the other release, too.
var (
	conformance = []string{"TestConformance", "TestStatements", "TestGuestKeys", "TestGuestBesideAllowTransfer", "TestKeysBelowEachOther", "TestFormerSourceIsDropped", "TestKeyRotation",
		"TestSigningIsTurnedOnAndOff", "TestRetransferDoesNotWaitForALostAnswer", "TestChain", "TestChainElsewhere", "TestUnattendedRollOvers", "TestTheyAskForDSRecords", "TestTheirObjections", "TestPowerDNSAsksForDSRecords"}
	core = []string{"TestWrite", "TestFleetHierarchy", "TestFleetRollout", "TestFleetEmptiedPrimary", "TestFleetStorage", "TestKeyRotation", "TestReadStatus",
		"TestReadYourWrites"}
)

// programs are those of a release of BIND, as make bind leaves them.
func programs(release string) []string {
	return []string{"NAMED=_output/bind/" + release + "/named", "NAMED_CHECKCONF=_output/bind/" + release + "/named-checkconf"}
}

// stages is the one place that says which test runs when. TestEveryTestHasAStage holds it against the code.
var stages = []stage{
	{name: "unit", lane: laneCheck, buildFlags: raced, without: slices.Concat(large, zoneFiles, answers), packages: []string{"./apiserver/...", "./cmd/...", "./extensions/...", "./manifests/...", "./pkg/...", "./webhook/...",
		"./test/bench/report", "./test/docs", "./test/fault", "./test/gate", "./test/heap", "./test/kube", "./test/lint/...", "./test/model", "./test/monitoring"},
		flags: []string{"-timeout=30m"}}, // The race detector makes imports of 100,000 records take minutes.
	{name: "unit-large", lane: laneCheck, only: large, packages: []string{"./apiserver/evaluate", "./extensions/externaldns", "./extensions/zoneimport", "./pkg/declared/source",
		"./pkg/dns/dnssec", "./pkg/dns/snapshot", "./pkg/dns/wire", "./pkg/fleet/bindcar", "./pkg/fleet/cluster", "./pkg/fleet/named", "./pkg/kube/schema", "./test/docs"}},
	{name: "unit-release", lane: laneCheck, module: "release", packages: []string{"./..."}, without: []string{"TestRelease"}},

	{name: "conformance-9.20", lane: laneGate, again: true, environment: programs("9.20"), buildFlags: raced, flags: []string{"-count=1"}, only: conformance,
		packages: []string{"./pkg/zone/reconcile", "./pkg/fleet/bindcar/sidecar", "./pkg/fleet/named/releases"}},
	{name: "cluster-test", lane: laneGate, module: "test/cluster", packages: []string{".", "./internal/..."}, flags: []string{"-count=1"}},
	{name: "coredns", lane: laneGate, module: "test/coredns", packages: []string{"./..."}, flags: []string{"-count=1"}},
	{name: "outside", lane: laneAll, packages: []string{"./test/vantage"}, flags: []string{"-count=1"}},
	{name: "page", lane: laneGate, packages: []string{"./test/ui"}, only: []string{"TestPage"}, flags: []string{"-count=1"}},
	{name: "chart-render", lane: laneGate, module: "charts", packages: []string{"."}},
	{name: "dnssec-faults", lane: laneGate, packages: []string{"./test/fault/dnssec"}, once: true, flags: []string{"-count=1", "-limit=40s"}},
	{name: "isolated", lane: laneGate, cluster: isolated, flags: []string{twoCores}, without: slices.Concat(random, demos, migrations),
		packages: []string{"./test/e2e", "./test/integration", "./test/attack"}},
	{name: "serial", lane: laneGate, cluster: serial, without: slices.Concat(random, migrations, []string{"TestFaults"}),
		packages: []string{"./test/integration", "./test/attack", "./test/fault"}},

	{name: "conformance-9.18", lane: laneAll, again: true, environment: programs("9.18"), buildFlags: raced, flags: []string{"-count=1"}, only: conformance,
		packages: []string{"./pkg/zone/reconcile", "./pkg/fleet/bindcar/sidecar", "./pkg/fleet/named/releases"}},
	{name: "cluster-9.18", lane: laneAll, again: true, environment: []string{"LOCKSTEP_BIND=9.18"}, cluster: isolated, flags: []string{twoCores}, only: core,
		packages: []string{"./test/integration"}},
	{name: "zone-files", lane: laneAll, packages: []string{"./extensions/zoneimport"}, only: zoneFiles, flags: []string{"-zone-files=10000", "-timeout=60m"}},
	{name: "answers", lane: laneAll, packages: []string{"./pkg/dns/dnssec"}, only: answers, flags: []string{"-answers=10000", "-timeout=120m"}},
	{name: "many-dnssec-faults", lane: laneAll, again: true, packages: []string{"./test/fault/dnssec"}, once: true, flags: []string{"-count=1", "-faults=2000", "-timeout=5h"}},
	{name: "random", lane: laneAll, cluster: serial, packages: []string{"./test/integration"}, only: random},
	{name: "migrations", lane: laneAll, cluster: serial, packages: []string{"./test/integration"}, only: migrations},
	{name: "demos", lane: laneAll, cluster: isolated, packages: []string{"./test/e2e"}, only: demos},
	{name: "demo-sources", lane: laneAll, cluster: serial, packages: []string{"./test/e2e"}},
	{name: "faults", lane: laneAll, cluster: serial, packages: []string{"./test/fault"}, only: []string{"TestFaults"}, once: true,
		flags: []string{"-faults=1000", "-test.timeout=12h"}},
	{name: "guides", lane: laneAll, cluster: isolated, flags: []string{"-test.parallel=4"}, packages: []string{"./test/guides"}},
	{name: "ui", lane: laneAll, cluster: isolated, packages: []string{"./test/ui"}, only: []string{"TestClusterPage"}},
	{name: "monitoring", lane: laneAll, cluster: serial, packages: []string{"./test/monitoring/live"}},
	{name: "chart-kinds", lane: laneAll, cluster: isolated, module: "charts", packages: []string{"./release"}},
	{name: "chart-release", lane: laneAll, cluster: serial, module: "charts", packages: []string{"./release"}},
	{name: "gitops", lane: laneAll, cluster: isolated, module: "test/gitops", packages: []string{"."}},
	{name: "acme", lane: laneAll, cluster: isolated, module: "test/acme", packages: []string{"."}},
	{name: "release", lane: laneAll, module: "release", packages: []string{"."}, only: []string{"TestRelease"}, flags: []string{"-count=1", "-timeout=60m", "-twice"}},
}

func stageNamed(name string) (*stage, error) {
	var names []string
	for i := range stages {
		if stages[i].name == name {
			return &stages[i], nil
		}
		names = append(names, stages[i].name)
	}
	return nil, fmt.Errorf("there is no stage %q; the stages are %s", name, strings.Join(names, ", "))
}

// selection returns the flags that choose the stage's tests, of those that match a regular expression if it is not empty.
func (s *stage) selection(selected string) []string {
	var flags []string
	switch {
	case selected != "":
		flags = append(flags, "-test.run="+selected)
	case len(s.only) > 0:
		flags = append(flags, "-test.run="+anyOf(s.only))
	}
	if len(s.without) > 0 {
		flags = append(flags, "-test.skip="+anyOf(s.without))
	}
	return flags
}

// environ returns the environment of the stage's tests.
func (s *stage) environ() []string {
	all := os.Environ()
	for _, variable := range s.environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(value, "_output/") {
			value = absolute(value)
		}
		all = append(all, name+"="+value)
	}
	return all
}

func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
