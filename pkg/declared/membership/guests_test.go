package membership_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// One with many keeps nobody from the first, however many there are.
func TestAdmitGuests(t *testing.T) {
	var all []*v1beta1.DNSProvider
	for n := range 2 * membership.MaxGuests {
		for _, namespace := range []string{"a", fmt.Sprintf("n%d", n)} {
			all = append(all, &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(n), UID: types.UID(fmt.Sprint(namespace, n)), CreationTimestamp: metav1.NewTime(time.Unix(int64(n), 0))}})
		}
	}
	admitted := membership.AdmitGuests(all)
	if len(admitted) != membership.MaxGuests {
		t.Errorf("%d are admitted", len(admitted))
	}
	greedy := slices.DeleteFunc(slices.Clone(admitted), func(p *v1beta1.DNSProvider) bool { return p.Namespace != "a" })
	if len(greedy) != 1 || greedy[0].Name != "0" {
		t.Errorf("a namespace with many providers has %d places", len(greedy))
	}
}
