package apply

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

func TestIsOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *v1beta1.ARecord
		written       string
		want          bool
	}{
		"somebody else":                {record("1", "a"), record("3", "b"), "1", true},
		"nothing of ours is known":     {record("1", "a"), record("3", "b"), "", true},
		"our own write":                {record("1", "a"), record("3", "b"), "3", false},
		"ours has come after it":       {record("1", "a"), record("3", "b"), "4", false},
		"something else has changed":   {record("1", "a"), record("3", "a"), "", false},
		"nothing but a resync":         {record("3", "a"), record("3", "a"), "", false},
		"another object of that name":  {&v1beta1.ARecord{}, record("3", "b"), "", false},
		"ours was before their second": {record("3", "a"), record("5", "b"), "4", true},
	} {
		current := &currentClient{writes: &ownWrites{now: time.Now}}
		if c.written != "" {
			current.writes.record(record(c.written, ""))
		}
		if got := NewCorrections(current).IsOverwritten(c.before, c.after); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whoever overwrites a status for ever gets it back less and less often.
func TestCorrectionsSlowDown(t *testing.T) {
	c := NewCorrections(nil)
	var all time.Duration
	for range 20 {
		all += c.Delay("a")
	}
	if got := c.Delay("a"); got != lastCorrection || all < 5*time.Minute {
		t.Errorf("twenty corrections in %s, then one after %s", all, got)
	}
	if got := c.Delay("b"); got != firstCorrection {
		t.Errorf("another object's after %s", got)
	}
}

// What somebody else has put into a status is taken away, also if we have nothing to put in its place. Nothing is replaced as a whole before.
func TestStatusTakesAwayWhatOthersWrote(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	replaced := 0
	instance := &v1beta1.Bind9Instance{}
	instance.Namespace, instance.Name = "dns", "web"
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(instance).WithStatusSubresource(instance).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			replaced++
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		}}).Build()
	read := func() *v1beta1.Bind9Instance {
		t.Helper()
		o := &v1beta1.Bind9Instance{}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(instance), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	kind := v1beta1.GroupVersion.WithKind("Bind9Instance")
	write := func(zones ...string) {
		t.Helper()
		truth := v1beta1.Bind9InstanceStatus{Replicas: 1}
		truth.Ready, truth.PhaseSince = true, &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
		status.Set(&truth.Conditions, status.Ready, status.True("AllReady", ""), 1, time.Now())
		for _, zone := range zones {
			truth.Zones = append(truth.Zones, v1beta1.ZoneReference{APIVersion: "v1", Kind: "DNSZone", Namespace: "dns", Name: zone, LastReconciledAt: truth.PhaseSince})
		}
		if err := Status(t.Context(), kube, kind, read(), &truth); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "c")
	write("a", "b", "c")
	write("b")
	write()
	if replaced > 0 {
		t.Errorf("%d statuses replaced although nobody else writes them", replaced)
	}
	overwritten := read()
	overwritten.Status.FailureReason, overwritten.Status.Replicas = "Invented", 7
	if err := kube.Status().Update(t.Context(), overwritten, client.FieldOwner("another")); err != nil {
		t.Fatal(err)
	}
	write()
	if s := read().Status; s.FailureReason != "" || s.Replicas != 1 || !s.Ready {
		t.Errorf("status %+v", s)
	}
}
