package review

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// What is below a name is found under its key, however deep both are, and no name has many keys: three DNSEndpoints of deep names could
// take all memory of the webhook.
func TestDeepNamesHaveFewKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		apex, owner := "bank.example.", ""
		if random.IntN(2) == 0 {
			apex = "."
		}
		above := strings.Repeat("z.", random.IntN(20)) + "bank.example."
		if apex != "." {
			apex = above
		}
		for owner = above; dns.CountLabel(owner) < 2+random.IntN(123) && len(owner) < 250; {
			owner = string(rune('a'+random.IntN(3))) + "." + owner
		}
		keys := belowKeys(owner, apex)
		if len(keys) > 18 || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != len(keys) {
			t.Fatalf("%s has %d keys: %q", owner, len(keys), keys)
		}
		for name := range parentNames(owner, apex) {
			if dns.CountLabel(name) > 1 && !slices.Contains(keys, belowKey(name)) {
				t.Fatalf("%s in %s is not found below %s", owner, apex, name)
			}
		}
	}
	if belowKey("a.example.") == belowKey("b.example.") || belowKey(strings.Repeat("a.", 9)+"example.") != belowKey(strings.Repeat("a.", 7)+"example.") {
		t.Error("names of common depth share a key, or others do not")
	}
}

// DNSEndpoints of a stranger, with names in somebody's zone, do not slow down reviews there: they are passed over as a whole.
func TestEndpointsOfStrangersCostNothing(t *testing.T) {
	stranger := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "stranger", Name: "x"}}
	for i := range 5000 {
		stranger.Spec.Endpoints = append(stranger.Spec.Endpoints, &v1alpha1.Endpoint{
			DNSName: fmt.Sprintf("%d.www.bank.example", i), RecordType: "A", Targets: []string{"192.0.2.1"}})
	}
	zone := sharedZone(t, "bank", "bank.example", "", "2026-01-01T00:00:00Z")
	for namespace, want := range map[string]int{"stranger": 0, "bank": 5000} {
		stranger.Namespace = namespace
		objects, found := newStaticObjects(zone, stranger), 0
		cost := testing.AllocsPerRun(1, func() {
			r, err := newRelatedObjects(objects, zone, &v1beta1.ARecord{})
			if err == nil {
				err = r.collectUnder(t.Context(), belowKey("www.bank.example."))
			}
			if err != nil {
				t.Fatal(err)
			}
			found = r.size()
		})
		if found != want || want == 0 && cost > 100 {
			t.Errorf("of %s: %d are found, with %v allocations", namespace, found, cost)
		}
	}
}
