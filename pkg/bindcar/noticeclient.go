package bindcar

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/status"
)

// errSilent ends a stream whose other side is gone without a word.
var errSilent = errors.New("the stream of notices fell silent")

// Notices calls fn, on the caller's goroutine, for every notice of the server, beginning with one that says Lost, and
// returns when the stream ends: it never returns nil, and io.EOF is what the error wraps when the sidecar ended the
// stream in good order. Whoever wants more notices calls again. While fn is busy the sidecar keeps the latest notice of
// each zone. IsNotSupported tells of a sidecar that has no notices.
func (c *Client) Notices(ctx context.Context, server Server, fn func(Notice)) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	watchdog := time.AfterFunc(c.silence, func() { giveUp(errSilent) })
	defer watchdog.Stop()
	body, err := c.openNotices(ctx, c.url(server, "/notices"))
	if err == nil {
		defer func() { _ = body.Close() }()
		err = c.readNotices(body, watchdog, fn)
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return unreachable(errSilent)
	}
	return err
}

// openNotices begins a stream; a token that was refused is read anew, once.
func (c *Client) openNotices(ctx context.Context, target string) (io.ReadCloser, error) {
	body, err := c.tryNotices(ctx, target)
	if hasCode(err, http.StatusUnauthorized) && c.token.forget() {
		body, err = c.tryNotices(ctx, target)
	}
	if hasCode(err, http.StatusNotFound) {
		return nil, &Error{Code: http.StatusNotFound, Reason: status.BindcarNotImplemented, Message: "does not tell of changes (404)"}
	}
	return body, err
}

func (c *Client) tryNotices(ctx context.Context, target string) (io.ReadCloser, error) {
	response, err := c.open(ctx, c.streams, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	if err := read(response, nil); err != nil {
		return nil, err
	}
	return nil, newError(response.StatusCode, Failure{})
}

// maxNoticeLine is far more than a notice takes, in bytes.
const maxNoticeLine = 4 << 10

func (c *Client) readNotices(body io.Reader, watchdog *time.Timer, fn func(Notice)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxNoticeLine)
	for lines.Scan() {
		watchdog.Stop()
		var notice Notice
		if err := json.Unmarshal(lines.Bytes(), &notice); err != nil {
			return unreachable(err)
		}
		if !notice.beat() {
			fn(notice)
		}
		watchdog.Reset(c.silence)
	}
	if err := lines.Err(); err != nil {
		return unreachable(err)
	}
	return unreachable(io.EOF)
}
