package clusterapi

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
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
