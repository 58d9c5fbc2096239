package inventory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// confirmationTimeout is how long a new fleet manager waits for the status of an instance to be confirmed.
const confirmationTimeout = 10 * time.Second

// Confirmed are the instances whose status this fleet manager has looked at. What a former one wrote may no longer be so: nothing else is to
// be concluded from it. It is safe for concurrent use. Nil confirms everything.
type Confirmed struct {
	mu    sync.Mutex
	began time.Time
	// ended is true once nothing is waited for any more.
	ended     bool
	instances map[types.UID]bool
}

// Add confirms the status of an instance.
func (c *Confirmed) Add(instance *v1beta1.Bind9Instance) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.instances == nil {
		c.instances = map[types.UID]bool{}
	}
	c.instances[instance.UID] = true
}

// Awaits reports whether the status of an instance may still be a former fleet manager's. It waits for none any more some time after the first
// call.
func (c *Confirmed) Awaits(instance *v1beta1.Bind9Instance, now time.Time) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = now
	}
	if now.Sub(c.began) > confirmationTimeout {
		c.ended, c.instances = true, nil
	}
	return !c.ended && !c.instances[instance.UID]
}
