package listwatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// newCodecs adds a fast path for the events of a watch to client-go's codecs for JSON. What the fast path does not know is decoded as
// ever.
func newCodecs(scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	return codecs{serializer.NewCodecFactory(scheme).WithoutConversion(), scheme}
}

type codecs struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(c.NegotiatedSerializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil
	}
	stream := *info.StreamSerializer
	stream.Framer, stream.Serializer = frames{stream.Framer}, events{stream.Serializer}
	info.StreamSerializer, info.Serializer = &stream, objects{info.Serializer, c.scheme}
	return []runtime.SerializerInfo{info}
}

// tolerant has what surrounds an object accept what client-go does; the object's own decoder judges the object.
var tolerant = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// frames splits a stream into JSON values.
type frames struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (frames) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &frameReader{Closer: r, values: jsontext.NewDecoder(r, tolerant)}
}

type frameReader struct {
	io.Closer
	values *jsontext.Decoder
	rest   jsontext.Value
}

// Read yields the next value, or a part of it with io.ErrShortBuffer. Errors of the stream are passed on as they are: client-go compares
// some of them.
func (r *frameReader) Read(into []byte) (int, error) {
	if len(r.rest) == 0 {
		value, err := r.values.ReadValue()
		if _, isSyntactic := errors.AsType[*jsontext.SyntacticError](err); errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.ErrUnexpectedEOF
		} else if cause := errors.Unwrap(err); cause != nil && !isSyntactic {
			err = cause
		}
		if err != nil {
			return 0, err
		}
		r.rest = value
	}
	n := copy(into, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// events decodes what surrounds the objects of a watch.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return e.Serializer.Decode(data, defaults, into)
	}
	return event, &schema.GroupVersionKind{}, jsonv2.Unmarshal(data, event, tolerant)
}

// objects decodes objects that decode themselves.
type objects struct {
	runtime.Serializer
	scheme *runtime.Scheme
}

// Decode implements runtime.Decoder.
func (o objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		kind := kindOf(data)
		object, err := o.scheme.New(kind)
		if itself, ok := object.(json.Unmarshaler); ok && err == nil {
			return object, &kind, itself.UnmarshalJSON(data)
		}
	}
	return o.Serializer.Decode(data, defaults, into)
}

// kindOf reads the kind of an object that begins with apiVersion and kind, as all do that kube-apiserver sends. It is empty for others.
func kindOf(data []byte) schema.GroupVersionKind {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), tolerant)
	var head [5]string // {, a name, its value, a name, its value
	for i := range head {
		token, err := d.ReadToken()
		if err != nil {
			return schema.GroupVersionKind{}
		}
		head[i] = token.String()
	}
	if head[1] != "apiVersion" || head[3] != "kind" {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(head[2], head[4])
}
