package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Many watchers are written to at the same time; each encoding is made once, from an object that encoders may change.
func TestObjectIsEncodedOnce(t *testing.T) {
	original := emptyStatus()
	original.Name = "arecord.www"
	s := newObject(original)
	original.Name = "changed afterwards"
	var mu sync.Mutex
	times := map[string]int{}
	encode := func(id string) func(runtime.Object, io.Writer) error {
		return func(o runtime.Object, w io.Writer) error {
			mu.Lock()
			times[id]++
			mu.Unlock()
			status := o.(*syncv1.SyncStatus)
			status.Kind = "Changed"
			_, err := fmt.Fprint(w, id, " ", status.Name)
			return err
		}
	}
	var wg sync.WaitGroup
	for i := range 20 {
		id := []string{"json", "table"}[i%2]
		wg.Go(func() {
			var got bytes.Buffer
			if err := s.CacheEncode(runtime.Identifier(id), encode(id), &got); err != nil || got.String() != id+" arecord.www" {
				t.Errorf("%q, %v", got.String(), err)
			}
		})
	}
	wg.Wait()
	if times["json"] != 1 || times["table"] != 1 {
		t.Errorf("encoded %v times", times)
	}
	if s.Kind != "SyncStatus" {
		t.Errorf("encoding has changed the kind to %q", s.Kind)
	}
}

// An encoder's error reaches everybody.
func TestObjectReportsErrors(t *testing.T) {
	s := newObject(emptyStatus())
	for range 2 {
		if err := s.CacheEncode("json", func(runtime.Object, io.Writer) error { return io.ErrShortWrite }, io.Discard); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%v", err)
		}
	}
}
