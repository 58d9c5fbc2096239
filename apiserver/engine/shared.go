package engine

import (
	"bytes"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// shared is what many watchers are told at the same time. It is encoded once for all who want the same encoding, however
// many they are.
type shared struct {
	*syncv1.SyncStatus // never changed

	mu      sync.Mutex
	encoded map[runtime.Identifier]*encoding
}

// encoding is a shared object's text in one encoding.
type encoding struct {
	once sync.Once
	text []byte
	err  error
}

var _ runtime.CacheableObject = &shared{}

// share takes the object as it is now.
func share(s *syncv1.SyncStatus) *shared {
	return &shared{SyncStatus: new(*s), encoded: map[runtime.Identifier]*encoding{}}
}

// GetObject implements runtime.CacheableObject. The object is copied as far as encoding it writes to it.
func (s *shared) GetObject() runtime.Object { return new(*s.SyncStatus) }

// CacheEncode implements runtime.CacheableObject.
func (s *shared) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	e := s.encoding(id)
	e.once.Do(func() {
		var text bytes.Buffer
		e.err = encode(s.GetObject(), &text)
		e.text = text.Bytes()
	})
	if e.err != nil {
		return e.err
	}
	_, err := w.Write(e.text)
	return err
}

func (s *shared) encoding(id runtime.Identifier) *encoding {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.encoded[id]
	if e == nil {
		e = &encoding{}
		s.encoded[id] = e
	}
	return e
}
