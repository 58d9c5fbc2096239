package review

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// counted has another number of objects stored than the caches hold.
type counted struct {
	*staticObjects
	stored int
}

func (c counted) countLive(context.Context, string, string) (int, bool) {
	return c.stored, c.stored >= 0
}

// A namespace gets so many zones and providers, whatever others have; changes of those that it has go on.
func TestLimits(t *testing.T) {
	zone := func(namespace, name string) string {
		return fmt.Sprintf(`{kind: DNSZone, metadata: {name: %s, namespace: %s, uid: %[1]s}, spec: {zoneName: %[1]s.example, soaRecord: {primaryNs: ns1.example.net., adminEmail: a@example.net}}}`, name, namespace)
	}
	provider := func(namespace string) string {
		return fmt.Sprintf(`{kind: DNSProvider, metadata: {name: new, namespace: %s}, spec: {rfc2136: {primaries: [{address: 192.0.2.1}]}}}`, namespace)
	}
	var all []client.Object
	for _, name := range []string{"a", "b"} {
		all = append(all, sharedZone(t, "full", name+".example", "", "2026-01-01T00:00:00Z"), &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: name, UID: "p"}})
	}
	for name, c := range map[string]struct {
		object, old string
		limits      Limits
		stored      int
		want        string
	}{
		"one zone too many":         {zone("full", "c"), "", Limits{2, 2}, -1, "namespace full may have 2 objects of kind DNSZone, and has 2: "},
		"one provider too many":     {provider("full"), "", Limits{2, 2}, -1, "namespace full may have 2 objects of kind DNSProvider, and has 2: "},
		"the caches lag":            {zone("full", "c"), "", Limits{2, 2}, 1, ""},
		"as many are stored":        {zone("full", "c"), "", Limits{2, 2}, 2, "--max-zones"},
		"a zone of another":         {zone("empty", "c"), "", Limits{2, 2}, -1, ""},
		"a provider of another":     {provider("empty"), "", Limits{2, 2}, -1, ""},
		"a change":                  {strings.Replace(zone("full", "a"), "spec: {", "spec: {ttl: 5, ", 1), zone("full", "a"), Limits{2, 2}, -1, ""},
		"one more is permitted":     {zone("full", "c"), "", Limits{3, 2}, -1, ""},
		"there is no limit":         {zone("full", "c"), "", Limits{}, -1, ""},
		"the limit is of the other": {zone("full", "c"), "", Limits{0, 2}, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			handler := NewHandler(counted{newStaticObjects(all...), c.stored})
			handler.Limits = c.limits
			answer := handler.Handle(quick(t), request(t, c.object, c.old))
			if answer.Allowed != (c.want == "") || c.want != "" && !strings.Contains(answer.Result.Message, c.want) {
				t.Errorf("allowed: %t, %v, want %q", answer.Allowed, answer.Result, c.want)
			}
		})
	}
}
