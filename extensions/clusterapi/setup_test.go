package clusterapi

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// Cluster API is served when its gate or its flag says so, and not otherwise.
func TestFeature(t *testing.T) {
	for flag, want := range map[string]bool{
		"--feature-gates=": false, "--cluster-api": true, "--feature-gates=ClusterAPI=true": true, "--feature-gates=ClusterAPI=false": false,
	} {
		gate, e, fs := featuregate.NewFeatureGate(), &Extension{}, pflag.NewFlagSet(flag, pflag.ContinueOnError)
		if err := e.AddFeatures(gate); err != nil {
			t.Fatal(err)
		}
		gate.AddFlag(fs)
		e.AddFlags(fs)
		if err := fs.Parse([]string{flag}); err != nil {
			t.Fatal(err)
		}
		if got := e.isEnabled(); got != want {
			t.Errorf("with %s it is served: %t, want %t", flag, got, want)
		}
	}
}

// Deadlines come from flags, and one that is too short is named.
func TestTimeoutFlags(t *testing.T) {
	e, fs := &Extension{}, pflag.NewFlagSet("flags", pflag.ContinueOnError)
	e.AddFlags(fs)
	if err := e.Validate(); err != nil || e.timeouts != status.DefaultCAPTTimeouts() {
		t.Errorf("by default: %v, %+v", err, e.timeouts)
	}
	if err := fs.Parse([]string{"--cluster-api-vpc-timeout=2s", "--cluster-api-secret-timeout=3s", "--cluster-api-control-plane-timeout=4s"}); err != nil {
		t.Fatal(err)
	}
	if want := (status.CAPTTimeouts{VPC: 2 * time.Second, Secret: 3 * time.Second, ControlPlane: 4 * time.Second}); e.timeouts != want || e.Validate() != nil {
		t.Errorf("%+v, %v, want %+v", e.timeouts, e.Validate(), want)
	}
	for _, flag := range []string{"--cluster-api-vpc-timeout", "--cluster-api-secret-timeout", "--cluster-api-control-plane-timeout"} {
		e, fs := &Extension{}, pflag.NewFlagSet(flag, pflag.ContinueOnError)
		e.AddFlags(fs)
		if err := fs.Parse([]string{flag + "=999ms"}); err != nil {
			t.Fatal(err)
		}
		if err := e.Validate(); err == nil || !strings.HasPrefix(err.Error(), flag+"=999ms: ") {
			t.Errorf("%s=999ms: %v", flag, err)
		}
	}
}
