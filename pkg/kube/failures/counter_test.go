package failures

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	basetestutil "k8s.io/component-base/metrics/testutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func failedZone(name, reason string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}}
	z.Status.FailureReason = reason
	return z
}

// createdGauge returns the metric as it is once it is registered.
func createdGauge() *metrics.GaugeVec {
	failed := newGauge()
	metrics.NewKubeRegistry().MustRegister(failed)
	return failed
}

func valueOf(t *testing.T, metric metrics.GaugeMetric) float64 {
	t.Helper()
	n, err := basetestutil.GetGaugeMetricValue(metric)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each object counts once, by what its status says last, until it is gone.
func TestCounter(t *testing.T) {
	failed := createdGauge()
	events := newCounter("DNSZone", failed).handler()
	events.OnAdd(failedZone("a", ""), true)
	events.OnAdd(failedZone("b", "Refused"), true)
	events.OnAdd(failedZone("c", "Refused"), false)
	events.OnAdd(failedZone("d", "BadKey"), false)
	events.OnUpdate(failedZone("a", ""), failedZone("a", "BadKey"))
	events.OnUpdate(failedZone("a", "BadKey"), failedZone("a", "BadKey"))
	events.OnUpdate(failedZone("b", "Refused"), failedZone("b", "ProgressDeadlineExceeded"))
	events.OnDelete(failedZone("c", "Refused"))
	events.OnDelete(cache.DeletedFinalStateUnknown{Obj: failedZone("d", "BadKey")})
	want := `
# HELP lockstep_objects_failed [ALPHA] Objects that a person has to help, by kind and reason.
# TYPE lockstep_objects_failed gauge
lockstep_objects_failed{kind="DNSZone",reason="BadKey"} 1
lockstep_objects_failed{kind="DNSZone",reason="ProgressDeadlineExceeded"} 1
lockstep_objects_failed{kind="DNSZone",reason="Refused"} 0
`
	if err := testutil.CollectAndCompare(failed, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	failed := createdGauge()
	c := newCounter("DNSZone", failed)
	for n := range 1000 {
		o := failedZone(fmt.Sprint("z", n), "")
		c.set(o, fmt.Sprint("Reason", n))
	}
	if n := testutil.CollectAndCount(failed); n != maxReasons+1 {
		t.Errorf("%d series, want %d", n, maxReasons+1)
	}
	if n := valueOf(t, failed.WithLabelValues("DNSZone", otherReasons)); n != 1000-maxReasons {
		t.Errorf("%v objects have other reasons, want %d", n, 1000-maxReasons)
	}
	for n := range 1000 {
		c.set(failedZone(fmt.Sprint("z", n), ""), "")
	}
	if n := valueOf(t, failed.WithLabelValues("DNSZone", otherReasons)); n != 0 || len(c.objects) != 0 {
		t.Errorf("%v objects are left, %d are kept", n, len(c.objects))
	}
}
