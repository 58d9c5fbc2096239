package store

import (
	"bytes"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Object is the object of an event that many watchers receive. It is encoded once for all who want the same encoding.
type Object struct {
	*syncv1.SyncStatus // never changed

	mu      sync.Mutex
	encoded map[runtime.Identifier]*encodedObject
}

// encodedObject is an Object's text in one encoding.
type encodedObject struct {
	once sync.Once
	text []byte
	err  error
}

var _ runtime.CacheableObject = &Object{}

// newObject copies the verdict as it is now.
func newObject(s *syncv1.SyncStatus) *Object {
	return &Object{SyncStatus: new(*s), encoded: map[runtime.Identifier]*encodedObject{}}
}

// GetObject implements runtime.CacheableObject. It returns a copy of what encoders write to.
func (o *Object) GetObject() runtime.Object { return new(*o.SyncStatus) }

// CacheEncode implements runtime.CacheableObject.
func (o *Object) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	e := o.encoding(id)
	e.once.Do(func() {
		var text bytes.Buffer
		e.err = encode(o.GetObject(), &text)
		e.text = text.Bytes()
	})
	if e.err != nil {
		return e.err
	}
	_, err := w.Write(e.text)
	return err
}

func (o *Object) encoding(id runtime.Identifier) *encodedObject {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.encoded[id]
	if e == nil {
		e = &encodedObject{}
		o.encoded[id] = e
	}
	return e
}
