package component

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	apiversion "k8s.io/apimachinery/pkg/version"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	lockstep "github.com/lockstep-dns/lockstep/pkg/version"
)

// The flags raise the verbosity of the process, and turn off a metric; others say how stable they are.
func TestApply(t *testing.T) {
	for _, name := range []string{"lockstep_test_kept", "lockstep_test_disabled"} {
		gauge := metrics.NewGauge(&metrics.GaugeOpts{Name: name, Help: "A test.", StabilityLevel: metrics.ALPHA})
		DeclareMetrics(gauge)
	}
	o, sections := NewOptions(), cliflag.NamedFlagSets{}
	o.AddFlags(&sections, pflag.NewFlagSet("own", pflag.ContinueOnError))
	fs := pflag.NewFlagSet("all", pflag.ContinueOnError)
	for _, section := range sections.FlagSets {
		fs.AddFlagSet(section)
	}
	if err := fs.Parse([]string{"-v=5", "--disabled-metrics=lockstep_test_disabled"}); err != nil {
		t.Fatal(err)
	}
	if klog.V(5).Enabled() {
		t.Fatal("the verbosity is 5 before the flags apply")
	}
	logged, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = logged
	err = o.Apply()
	os.Stderr = stderr
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(logged.Name()); err != nil || len(text) > 0 {
		t.Errorf("good flags are logged: %v, %s", err, text)
	}
	if !klog.V(5).Enabled() || klog.V(6).Enabled() {
		t.Error("-v=5 has not set the verbosity")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	help := map[string]string{}
	for _, family := range families {
		help[family.GetName()] = family.GetHelp()
	}
	if got := help["lockstep_test_kept"]; !strings.HasPrefix(got, "[ALPHA] ") {
		t.Errorf("the help of the metric is %q: no stability level", got)
	}
	if _, found := help["lockstep_test_disabled"]; found {
		t.Error("--disabled-metrics has not turned the metric off")
	}
}

func TestVersion(t *testing.T) {
	recorder := httptest.NewRecorder()
	ServeVersion(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, VersionPath, nil))
	var got apiversion.Info
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != lockstep.Module() || got.GoVersion != runtime.Version() {
		t.Errorf("/version answers %+v", got)
	}
}
