package plugin

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/version"
)

// What can be told without a cluster.
func TestRun(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"":                                    {0, "Available Commands"},
		"--help":                              {0, "kubectl lockstep tree"},
		"tree --help":                         {0, "--watch"},
		"--version":                           {0, "kubectl lockstep version " + version.Module() + "\n"},
		"__complete tree dnsz":                {0, "dnszone/"},
		"__complete tree dnszone/x dnsz":      {0, "dnszone/"},
		"__complete status arecord w":         {0, ":4\n"},
		"__complete path dnsz":                {0, ":4\n"},
		"__complete confirm dnsz":             {0, ":4\n"},
		"__complete path example-com x":       {0, ":4\n"},
		"nonsense":                            {2, `error: unknown command "nonsense" for "kubectl lockstep"`},
		"status --nonsense":                   {2, "error: unknown flag: --nonsense"},
		"status --timeout=-1s":                {2, "error: --timeout=-1s: it cannot be below 0"},
		"status pod/x":                        {2, `error: there is no SyncStatus of "pod"`},
		"tree --color=sometimes":              {2, "error: invalid argument \"sometimes\" for \"--color\" flag: it is one of auto, always and never"},
		"status -A arecord/www":               {2, "error: --all-namespaces goes without names"},
		"status -l a=b arecord/www":           {2, "error: --selector goes without names"},
		"diff bind9instance/x":                {2, "error: Bind9Instance/x has no data of its own"},
		"diff bind9clusters":                  {2, "error: Bind9Cluster has no data of its own"},
		"tree --context nowhere":              {2, `error: kubeconfig: context "nowhere" does not exist`},
		"tree --kubeconfig /does/not/be":      {2, "error: kubeconfig: stat /does/not/be"},
		"status --server https://127.0.0.1:1": {2, "error: Get"},
		"tree --watch -s https://127.0.0.1:1": {2, "error: Get"},
		"doctor --help":                       {0, "--system-namespace"},
		"doctor -o yaml":                      {2, "error: --output=yaml: it is json, or nothing"},
		"doctor --color=sometimes":            {2, "--color"},
		"confirm x --color=sometimes":         {2, "error: invalid argument \"sometimes\" for \"--color\" flag: it is one of auto, always and never"},
		"plan -f x --color=sometimes":         {2, "--color"},
		"ui --color=sometimes":                {2, "--color"},
		"path x --timeout=-1s":                {2, "error: --timeout=-1s: it cannot be below 0"},
		"chain dnszone/x -A":                  {2, "error: --all-namespaces goes without names"},
		"chain dnszone/x -l a=b":              {2, "error: unknown shorthand flag: 'l'"},
		"plan -f x -l a=b":                    {2, "error: unknown shorthand flag: 'l'"},
		"confirm x -A":                        {2, "error: unknown shorthand flag: 'A'"},
		"doctor -l a=b":                       {2, "error: unknown shorthand flag: 'l'"},
		"doctor dns":                          {2, `error: unknown command "dns"`},
		"doctor --server https://127.0.0.1:1": {2, "error: kube-apiserver does not answer: Get"},
		"tree -n":                             {2, "error: flag needs an argument"},
	} {
		var out, errOut bytes.Buffer
		code := Run(t.Context(), strings.Fields(args), &out, &errOut)
		if code != want.code || !strings.Contains(out.String()+errOut.String(), want.says) {
			t.Errorf("kubectl lockstep %s: exit code %d, want %d and %q:\n%s%s", args, code, want.code, want.says, &out, &errOut)
		}
		if code == exitError && (out.Len() > 0 || strings.Count(errOut.String(), "\n") != 1) {
			t.Errorf("kubectl lockstep %s: an error is one line on standard error:\n%s%s", args, &out, &errOut)
		}
	}
}

func TestExplain(t *testing.T) {
	c, www := &statusClient{namespace: "dns"}, target{kind: mustKind(t, "arecord"), name: "www"}
	missing := apierrors.NewNotFound(v1alpha1.Resource(statusResource), "arecord.www")
	nowhere := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1alpha1.Resource(statusResource), "arecord.www", "404 page not found", 0, true)
	for name, tc := range map[string]struct {
		err  error
		of   target
		want string
	}{
		"no such object":     {missing, www, "there is no ARecord www in namespace dns"},
		"no API, for a name": {nowhere, www, "does not serve SyncStatus (sync.bindy.firestoned.io/v1alpha1): is Lockstep installed?"},
		"no API, for a list": {nowhere, target{}, "is Lockstep installed?"},
		"the API is down":    {apierrors.NewServiceUnavailable("no endpoints"), target{}, "does not answer (no endpoints): see kubectl get apiservice v1alpha1.sync.bindy.firestoned.io"},
		"not allowed":        {apierrors.NewForbidden(v1alpha1.Resource(statusResource), "", errors.New("no")), target{}, "the role view would do"},
		"something else":     {errors.New("x509: unknown authority"), target{}, "x509: unknown authority"},
	} {
		if got := c.explainError(tc.err, tc.of); !strings.Contains(got.Error(), tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if err := c.explainError(nil, www); err != nil {
		t.Error(err)
	}
}

func TestPalette(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	for color, want := range map[string]bool{"auto": false, "never": false, "always": true} {
		o := newOptions()
		if err := o.color.Set(color); err != nil {
			t.Fatal(err)
		}
		if got := o.newPalette(&bytes.Buffer{}); got != (render.Palette{On: want}) {
			t.Errorf("--color=%s: %v", color, got)
		}
	}
}

func TestPrintReport(t *testing.T) {
	well := doctor.Finding{Group: "Servers", Check: "keys", Level: doctor.OK, Found: "fine"}
	bad := doctor.Finding{Group: "Servers", Check: "clocks", Level: doctor.Warning, Found: "late", Remedy: "wait"}
	none := doctor.Finding{Group: "Servers", Check: "clocks", Level: doctor.Skipped, Found: "you may not"}
	for name, tc := range map[string]struct {
		report doctor.Report
		output string
		says   string
		err    error
	}{
		"all is well": {doctor.Report{well, none}, "", "2 checks: 1 ok, 1 skipped\n", nil},
		"a warning":   {doctor.Report{well, bad}, "", "→ wait\n2 checks: 1 ok, 1 warning\n", errUnhealthy},
		"in JSON":     {doctor.Report{bad}, "json", `"remedy": "wait"`, errUnhealthy},
	} {
		var out bytes.Buffer
		if err := newOptions().printReport(&out, tc.report, tc.output); !errors.Is(err, tc.err) || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
	var out bytes.Buffer
	if err := newOptions().printReport(&out, doctor.Report{none}, ""); err == nil || errors.Is(err, errUnhealthy) || out.Len() > 0 {
		t.Errorf("nothing may be read: %v %s", err, &out)
	}
}

func TestFirstLines(t *testing.T) {
	for n, want := range map[int]string{
		3: "a\nb\nc\n", 4: "a\nb\nc\n", 2: "a\n… 2 more lines: a larger terminal, a name or --out-of-step shows them\n", 0: "a\nb\nc\n",
	} {
		if diff := cmp.Diff(want, firstLines("a\nb\nc\n", n)); diff != "" {
			t.Errorf("%d lines: %s", n, diff)
		}
	}
}

// A namespace's diff shows each RRset with the object that declares it, and with the zone only what no other object has.
func TestOnce(t *testing.T) {
	set := func(name string) v1alpha1.RRset { return v1alpha1.RRset{Name: name, Type: "A"} }
	off := func(s v1alpha1.SyncStatus, observed ...v1alpha1.RRset) v1alpha1.SyncStatus {
		s.Servers[0].State, s.Servers[0].Observed = v1alpha1.StateMissing, observed
		s.Servers[0].Records = &v1alpha1.RecordCounts{OutOfSync: int32(len(observed))}
		return s
	}
	www := object("dns", "ARecord", "www", "example.com", "p")
	www.RRsets = []v1alpha1.RRset{set("www.")}
	items := []v1alpha1.SyncStatus{
		www,
		off(object("dns", "DNSZone", "one", "example.com", "p"), set("www.")),
		off(object("dns", "DNSZone", "more", "example.com", "p"), set("www."), set("mail.")),
		off(object("far", "DNSZone", "far", "example.com", "p"), set("www.")),
	}
	dropShownRRsets(items)
	var got []string
	for _, s := range items[1:] {
		row := s.Servers[0]
		line := s.Name + " " + string(row.State)
		for _, o := range row.Observed {
			line += " " + o.Name
		}
		if row.Records != nil {
			line += " counted"
		}
		got = append(got, line)
	}
	want := []string{"dnszone.one InSync", "dnszone.more Missing mail.", "dnszone.far Missing www. counted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGaps(t *testing.T) {
	var g skippedReasons
	for _, about := range []string{"dnszone.z", "arecord.a", "arecord.b", "arecord.c", "arecord.d"} {
		g.add("p is Unreachable", about)
	}
	g.add("NotSelected", "arecord.e")
	var got []string
	for _, one := range g {
		got = append(got, one.String())
	}
	want := []string{"not compared: dnszone.z, arecord.a, arecord.b and 2 more: p is Unreachable", "not compared: arecord.e: NotSelected"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing that the plugin repeats commands a terminal.
func TestOutputIsSafe(t *testing.T) {
	var out, errOut strings.Builder
	if code := Run(t.Context(), []string{"migrate", "--\x1b[2J"}, &out, &errOut); code != exitError || strings.Contains(out.String()+errOut.String(), "\x1b") || !strings.Contains(errOut.String(), `\x1b[2J`) {
		t.Errorf("exit code %d, output %q, errors %q", code, out.String(), errOut.String())
	}
}
