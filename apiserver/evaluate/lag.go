package evaluate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// lagTimeout is how long it is remembered that a server was behind when nobody asks.
const lagTimeout = time.Hour

// lagHistory remembers since when each server has been behind.
type lagHistory struct {
	mu    sync.Mutex
	since *cache.Expiring // by zoneOnServer
}

// zoneOnServer is a declared zone on a server: two that have one name may ask for different things.
type zoneOnServer struct {
	zone   desired.ZoneKey
	server observe.Peer
}

// behindSince notes whether a server was behind at some time, and returns since when it has been; zero when it is
// not.
func (l *lagHistory) behindSince(of zoneOnServer, behind bool, at time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !behind {
		l.since.Delete(of)
		return time.Time{}
	}
	if since, known := l.since.Get(of); known && since.(time.Time).Before(at) {
		at = since.(time.Time)
	}
	l.since.Set(of, at, lagTimeout)
	return at
}
