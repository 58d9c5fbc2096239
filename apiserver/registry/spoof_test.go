package registry

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Whoever answers in place of a server, with all that is declared, but without its key: no row is in sync by that, neither of
// a record, nor of a zone, nor of an instance.
func TestAnswersWithoutProof(t *testing.T) {
	zones := []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7", Extra: "allow-transfer { any; };"}}
	for name, tc := range map[string]struct {
		readable bool
		filter   bind.Filter
	}{
		"the key cannot be read": {readable: false},
		"the signature is taken off": {readable: true, filter: func(_ string, reply []byte) ([]byte, error) {
			m := new(dns.Msg)
			if err := m.Unpack(reply); err != nil {
				return nil, err
			}
			if m.IsTsig() != nil {
				m.Extra = m.Extra[:len(m.Extra)-1]
			}
			return m.Pack()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakekube.New(t)
			var readable atomic.Bool
			readable.Store(tc.readable)
			w := newReplica(c, func(o *testOptions) {
				o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) {
					if readable.Load() {
						return &c.Key, nil
					}
					return nil, errors.New("forbidden")
				}
			})
			s := bind.Start(t, bind.Options{Zones: zones, Transfer: w.Key})
			p := bind.StartProxy(t, s.Addr)
			if tc.filter != nil {
				p.Filter(tc.filter)
			}
			w.Server("primary", v1beta1.RolePrimary, p.Addr)
			z := fakekube.Zone("example.test", "primary")
			w.Apply(z)
			w.Apply(w.Record(z, "www", "192.0.2.7"))
			for _, object := range []string{"arecord.www", "dnszone.example.test", "bind9instance.primary"} {
				w.Eventually(object+" has been evaluated", func() bool { return len(w.get(object).Servers) == 1 })
				if s := w.get(object); s.Status.InSync {
					t.Errorf("%s is in sync: %+v", object, s.Servers[0])
				}
			}
			readable.Store(true)
			p.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
			w.Eventually("it is in sync by signed answers", func() bool { return states(w.get("arecord.www")) == inSyncHere })
		})
	}
}
