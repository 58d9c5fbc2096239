package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/doctor"
)

func TestFindings(t *testing.T) {
	report := doctor.Report{
		{Group: "Installation", Check: "deployments", Level: doctor.OK, Found: "all 4 are available"},
		{Group: "Installation", Check: "leases", Level: doctor.Skipped, Found: "you may not get leases"},
		{Group: "Servers", Check: "reachable", Level: doctor.Failure, Found: "dns/p-0:\ntimed out", Remedy: "kubectl describe pod p-0"},
	}
	want := `Installation
  ok        deployments   all 4 are available
  skipped   leases        you may not get leases
Servers
  failure   reachable     dns/p-0: timed out
                          → kubectl describe pod p-0
`
	if diff := cmp.Diff(want, Findings(report, Palette{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = "\x1b[1mServers\x1b[0m\n  \x1b[31mfailure\x1b[0m   reachable   dns/p-0: timed out\n                        → kubectl describe pod p-0\n"
	if diff := cmp.Diff(want, Findings(report[2:], Palette{On: true})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for want, of := range map[string]doctor.Report{
		"3 checks: 1 ok, 1 failure, 1 skipped": report, "2 checks: 1 ok, 1 skipped": report[:2], "\x1b[31m1 checks: 0 ok, 1 failure\x1b[0m": report[2:],
	} {
		if got := FindingCounts(of, Palette{On: want[0] == '\x1b'}); got != want {
			t.Errorf("counts %q, want %q", got, want)
		}
	}
}
