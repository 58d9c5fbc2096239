package ctrlmetrics

import (
	"testing"

	base "k8s.io/component-base/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

// Managers serve the version, and the metrics that were declared.
func TestServer(t *testing.T) {
	const name = "lockstep_test_declared"
	component.DeclareMetrics(base.NewGauge(&base.GaugeOpts{Name: name, Help: "A test.", StabilityLevel: base.ALPHA}))
	if err := component.RegisterMetrics(); err != nil {
		t.Fatal(err)
	}
	if handler := Server(":8080").ExtraHandlers[component.VersionPath]; handler == nil {
		t.Error("managers do not serve the version")
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return
		}
	}
	t.Errorf("managers do not serve %s", name)
}
