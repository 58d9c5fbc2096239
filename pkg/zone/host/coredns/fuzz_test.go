package coredns

import (
	"encoding/json"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// FuzzMessages: whatever etcd sends as an answer or an event, it is decoded or refused.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, raw []byte) {
		for _, message := range []any{&etcdserverpb.RangeResponse{}, &etcdserverpb.TxnResponse{}, &etcdserverpb.AuthenticateResponse{}, &notice{}} {
			_ = newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, message)
		}
	})
}

// FuzzPages: whatever keys and values etcd says that a zone has, the answers that follow are the zone's, or there are none.
func FuzzPages(f *testing.F) {
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, raw []byte, ours bool) {
		page := &etcdserverpb.RangeResponse{}
		if newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, page) != nil {
			return
		}
		b := &Backend{options: Options{Prefix: "/skydns", Owner: "team/corp"}}
		if !ours {
			b.options.Owner = "team/other"
		}
		s := &snapshot{layout: b.layoutOf("z.test."), memory: (*outbound.Account)(nil).Reserve(1 << 20)}
		r := &reading{Backend: b, snapshot: s, page: pageSize, from: s.pathOf(s.zone) + "/", to: s.pathOf(s.zone) + "0"}
		err := r.take(page.Kvs)
		r.decoding.Wait()
		if err != nil || len(r.pages) == 0 {
			return
		}
		s.entries = r.pages[0]
		c, err := newContent(s)
		if err != nil {
			return
		}
		for name, sets := range c.sets {
			for _, set := range sets {
				if set.Name != name || !rrset.IsSubdomain(name, s.zone) {
					t.Errorf("zone %s has %v at %s", s.zone, set, name)
				}
			}
		}
	})
}

// FuzzValues: a value is read as encoding/json reads it, also where it is decoded faster.
func FuzzValues(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want value
		err := json.Unmarshal(raw, &want)
		if got, ok := decodeJSON(raw); ok != (err == nil) || ok && got != want {
			t.Errorf("%q is read as %+v, %t, want %+v, %v", raw, got, ok, want, err)
		}
	})
}
