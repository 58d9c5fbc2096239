package coredns

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// What a message may take, encoded and decoded. etcd accepts requests of 1.5 MiB, so no value is larger, and no event of a watch.
const (
	maxEncoded = 2<<20 + 64<<10
	maxDecoded = 4 << 20
	// maxSmall is for the answers to transactions and sign-ins, encoded.
	maxSmall = 64 << 10
)

// What decoding allocates beside the content of fields: for a message, with its place in a slice, and for a string or bytes.
const (
	messageSize = 192
	stringSize  = 48
	// maxDepth is how deeply messages may be nested. What etcd sends us is nested four times.
	maxDepth = 8
)

// errDecodedTooLarge is a message that is small on the wire and large in memory: two bytes are an empty key-value of a hundred.
var errDecodedTooLarge = errors.New("a message of etcd takes too much memory when it is decoded")

// codec is gRPC's codec for protobuf, with a limit on what a message takes in memory. It is checked before the message is decoded.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(encodingproto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	raw := buffer.ReadOnlyData()
	if n, ok := v.(*notice); ok {
		return n.decode(raw)
	}
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	if _, err := takeMessage(maxDecoded, raw, message.ProtoReflect().Descriptor(), maxDepth); err != nil {
		return err
	}
	return proto.Unmarshal(raw, message)
}

// takeMessage is what is left of some bytes of memory when a message is decoded, or errDecodedTooLarge.
func takeMessage(left int, raw []byte, d protoreflect.MessageDescriptor, depth int) (int, error) {
	if left -= messageSize; left < 0 || depth == 0 {
		return 0, errDecodedTooLarge
	}
	for len(raw) > 0 {
		number, kind, size := protowire.ConsumeField(raw)
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		var err error
		if left, err = takeField(left, raw[:size], kind, d.Fields().ByNumber(number), depth); err != nil {
			return 0, err
		}
		raw = raw[size:]
	}
	return left, nil
}

// takeField is takeMessage for a field, with its tag. f is nil if the message has no such field.
func takeField(left int, raw []byte, kind protowire.Type, f protoreflect.FieldDescriptor, depth int) (int, error) {
	switch {
	case f == nil:
		left -= 2 * len(raw) // Kept as it is, in a slice that grows.
	case kind == protowire.BytesType:
		_, _, tag := protowire.ConsumeTag(raw)
		content, _ := protowire.ConsumeBytes(raw[tag:])
		switch f.Kind() {
		case protoreflect.MessageKind:
			return takeMessage(left, content, f.Message(), depth-1)
		case protoreflect.StringKind, protoreflect.BytesKind:
			left -= stringSize + len(content)
		default:
			left -= 16 * len(content) // packed
		}
	default:
		left -= 16
	}
	if left < 0 {
		return 0, errDecodedTooLarge
	}
	return left, nil
}
