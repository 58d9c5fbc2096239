package content

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func deleted(a *v1beta1.ARecord) *v1beta1.ARecord {
	a = a.DeepCopy()
	now := metav1.Now()
	a.DeletionTimestamp = &now
	a.Generation++
	return a
}

func TestAnObjectIsLetGoOfWhenNothingOfItIsStuck(t *testing.T) {
	c := newCopies(t)
	c.zones.Set(deleted(numbered(1, 1)))
	c.declare()
	var stuck rrset.Key
	for _, key := range c.state.keysOf(numbered(1, 1)) {
		stuck = key
	}
	if released := c.state.TakeReleased(func(key rrset.Key) bool { return key == stuck }); len(released) != 0 {
		t.Errorf("released although it is stuck: %v", released)
	}
	if released := c.state.TakeReleased(func(rrset.Key) bool { return false }); len(released) != 1 {
		t.Errorf("released: %v", released)
	}
}
