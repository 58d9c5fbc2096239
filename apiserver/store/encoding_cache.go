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

	encodings sync.Map // of functions that return the text or an error, by runtime.Identifier
}

var _ runtime.CacheableObject = &Object{}

// newObject copies the verdict as it is now.
func newObject(s *syncv1.SyncStatus) *Object { return &Object{SyncStatus: new(*s)} }

// GetObject implements runtime.CacheableObject. It returns a copy of what encoders write to.
func (o *Object) GetObject() runtime.Object { return new(*o.SyncStatus) }

// CacheEncode implements runtime.CacheableObject.
func (o *Object) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	encoding, _ := o.encodings.LoadOrStore(id, sync.OnceValues(func() ([]byte, error) {
		var text bytes.Buffer
		err := encode(o.GetObject(), &text)
		return text.Bytes(), err
	}))
	text, err := encoding.(func() ([]byte, error))()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
