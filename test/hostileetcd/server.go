// Package hostileetcd runs servers in the place of an etcd that send whatever the grammar of its protocol allows.
package hostileetcd

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/encoding/protowire"
)

// Answer sends messages of an answer to one call. Method is the last part of its name, for example Range. request has the bytes of a
// request; send takes those of a message, and fails when nobody reads any more.
type Answer func(method string, request []byte, send func(message []byte) error) error

// Connections counts the connections that servers have. The zero value is ready for use.
type Connections struct {
	mu        sync.Mutex
	now, most int
}

// Most returns how many there were at the same time.
func (c *Connections) Most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

func (c *Connections) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

// TagConn implements stats.Handler.
func (c *Connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (c *Connections) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.add(1)
	case *stats.ConnEnd:
		c.add(-1)
	}
}

// TagRPC implements stats.Handler.
func (c *Connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (c *Connections) HandleRPC(context.Context, stats.RPCStats) {}

// Start runs a server on an address until the test ends, and returns where. It answers to each request of a call.
func Start(t testing.TB, host netip.Addr, answer Answer) netip.AddrPort {
	t.Helper()
	return StartCounted(t, host, &Connections{}, answer)
}

// StartCounted is Start for one of several servers whose connections are counted together.
func StartCounted(t testing.TB, host netip.Addr, counted *Connections, answer Answer) netip.AddrPort {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.StatsHandler(counted), grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2(encodingproto.Name)}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(stream)
		method := name[strings.LastIndexByte(name, '/')+1:]
		for {
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return nil
			}
			if err := answer(method, request, func(m []byte) error { return stream.SendMsg(m) }); err != nil {
				return err
			}
			if method != "Watch" {
				return nil
			}
		}
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

// rawCodec passes bytes on as they are.
type rawCodec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Field returns a field of a message that has bytes: a string, or another message.
func Field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// Number returns a field of a message that has a number.
func Number(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}
