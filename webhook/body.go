package webhook

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/share"
)

const (
	// maxBodySize caps a review's body in bytes. A review holds the new and the old object, each at most 3 MiB
	// (kube-apiserver's limit on requests).
	maxBodySize = 6<<20 + 64<<10
	// maxBodyTime is how long a body may take to come in. kube-apiserver, in the same Kubernetes cluster, sends it at once.
	maxBodyTime = 3 * time.Second
	// maxBytes caps the bytes of all requests in memory, and maxBytesPerHost those from one address: half of it, because the
	// only honest sender may be one kube-apiserver.
	maxBytes        = 128 << 20
	maxBytesPerHost = maxBytes / 2
	// chunkSize is how much of a body is paid for and read at a time.
	chunkSize = 4 << 10
	// requestSize is what a request takes besides its headers and body: goroutine, stream and buffers.
	requestSize = 16 << 10
)

// bodyError is why a body was not read, as an HTTP response.
type bodyError struct {
	code int
	text string
}

func (e *bodyError) Error() string { return e.text }

// bodyReader reads the bodies of requests. Memory is taken for what has come in, never for what was announced. It is safe for
// concurrent use.
type bodyReader struct {
	bytes   *share.Pool // by address
	timeout time.Duration
}

func newBodyReader() *bodyReader {
	return &bodyReader{share.NewPool(maxBytes, maxBytesPerHost), maxBodyTime}
}

// read reads the whole body; release gives its memory back.
func (b *bodyReader) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), failed *bodyError) {
	// The server sets another deadline before the next request of the connection.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, nil, &bodyError{http.StatusInternalServerError, "the connection has no deadline"}
	}
	host, tooMany := hostOf(r), &bodyError{http.StatusServiceUnavailable, "too many bytes of reviews at once"}
	taken := requestSize + sizeOfHeader(r.Header)
	if b.bytes.Take(host, taken) != nil {
		return nil, nil, tooMany
	}
	release = func() { b.bytes.Add(host, -taken) }
	chunk, paid := make([]byte, chunkSize), 0
	for {
		if len(body)+chunkSize > paid {
			if b.bytes.Take(host, chunkSize) != nil {
				failed = tooMany
				break
			}
			taken, paid = taken+chunkSize, paid+chunkSize
		}
		n, err := r.Body.Read(chunk)
		if body = append(body, chunk[:n]...); errors.Is(err, io.EOF) && len(body) <= maxBodySize {
			return body, release, nil
		}
		if failed = b.problemOf(len(body), err); failed != nil {
			break
		}
	}
	release()
	return nil, nil, failed
}

func sizeOfHeader(header http.Header) (size int64) {
	for key, values := range header {
		size += int64(len(key))
		for _, value := range values {
			size += int64(len(value))
		}
	}
	return size
}

// problemOf returns what is wrong with a body of which size bytes have come in; nil if the rest may follow.
func (b *bodyReader) problemOf(size int, err error) *bodyError {
	switch {
	case size > maxBodySize:
		return &bodyError{http.StatusRequestEntityTooLarge, fmt.Sprintf("a review has at most %d bytes", maxBodySize)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &bodyError{http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %s", b.timeout)}
	case err != nil:
		return &bodyError{http.StatusBadRequest, "the body cannot be read: " + err.Error()}
	}
	return nil
}

// hostOf is the address that a request comes from, without its port.
func hostOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}
