package wire

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/miekg/dns"
)

// Pipeline is how messages follow each other on a Conn (RFC 7766 section 6.2.1.1).
type Pipeline struct {
	// Next returns the next message, nil after the last one. It is called when the message may be sent.
	Next func() *dns.Msg
	// Ahead is how many messages may be under way at a time: with more than one, the server works while the next is made.
	Ahead int
	// Timeout bounds the sending of a message, and the wait for the earliest reply that is missing.
	Timeout time.Duration
}

// ExchangeAll sends messages as Exchange does and yields the replies in the order of the messages, whatever the order in which they
// come (RFC 7766 section 7). The first error is the last that it yields: of the messages after that one nothing is known.
func (c *Conn) ExchangeAll(ctx context.Context, p Pipeline) iter.Seq2[*dns.Msg, error] {
	return func(yield func(*dns.Msg, error) bool) {
		select {
		case c.turn <- struct{}{}:
			defer func() { <-c.turn }()
		case <-ctx.Done():
			yield(nil, wrapError(ctx.Err(), "connect", c.server, ""))
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := context.AfterFunc(c.closed, func() { cancel(ErrClosed) }) //nolint:contextcheck // of the connection
		defer stop()
		r := pipelineRun{Conn: c, Pipeline: p}
		r.run(ctx, yield)
		if len(r.underWay) > 0 || r.broken {
			c.disconnect()
		}
		c.used = time.Now()
	}
}

// pipelineRun is one ExchangeAll.
type pipelineRun struct {
	*Conn
	Pipeline
	// underWay are the messages that were sent and of which no reply was yielded, in order.
	underWay []*pipelined
	// broken is true once the connection cannot be used any more, ended once no more messages are to be sent.
	broken, ended bool
}

// pipelined is a message that was sent, or failed to be.
type pipelined struct {
	message *dns.Msg
	*request
	answered bool
	reply    *dns.Msg
	err      error
}

func (r *pipelineRun) run(ctx context.Context, yield func(*dns.Msg, error) bool) {
	for {
		r.fill(ctx)
		if len(r.underWay) == 0 {
			return
		}
		first := r.underWay[0]
		for !first.answered {
			r.receive(ctx)
		}
		r.underWay = r.underWay[1:]
		if first.err != nil {
			yield(nil, wrapError(first.err, operationName(first.message), r.server, first.message.Question[0].Name))
			return
		}
		if !yield(first.reply, nil) {
			return
		}
	}
}

// fill sends messages until as many are under way as may be.
func (r *pipelineRun) fill(ctx context.Context) {
	for !r.ended && len(r.underWay) < max(1, r.Ahead) {
		m := r.Next()
		if m == nil {
			r.ended = true
			return
		}
		next := &pipelined{message: m}
		if next.err = r.send(ctx, next); next.err != nil {
			next.answered, r.ended = true, true
		}
		r.underWay = append(r.underWay, next)
	}
}

// send sends a message, over a new connection if nothing is under way on the one that there is and it is not usable.
func (r *pipelineRun) send(ctx context.Context, next *pipelined) (err error) {
	if next.request, err = newRequest(next.message, r.key); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	if len(r.underWay) == 0 {
		if err := r.ensureConnected(ctx); err != nil {
			return err
		}
	}
	defer bindToContext(ctx, r.nc)()
	if err := writeMessage(r.nc, next.raw); err != nil {
		r.broken = true
		return &Error{Sent: true, Err: contextCause(ctx, err)}
	}
	return nil
}

// receive reads one reply. When there is none to be had, the earliest message has failed.
func (r *pipelineRun) receive(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	defer bindToContext(ctx, r.nc)()
	raw, err := readMessage(r.nc, maxReply)
	if err == nil {
		err = r.assign(raw)
	}
	if err != nil {
		first := r.underWay[0]
		r.broken, first.answered, first.err = true, true, &Error{Sent: true, Err: contextCause(ctx, err)}
	}
}

// assign gives a reply to the message that it answers.
func (r *pipelineRun) assign(raw []byte) error {
	for _, m := range r.underWay {
		if m.answered || len(raw) < headerSize || countAt(raw, 0) != int(m.id) {
			continue
		}
		reply, err := m.parseReply(raw)
		if errors.Is(err, ErrReply) {
			return err
		}
		m.answered, m.reply, m.err = true, reply, err
		return nil
	}
	return ErrReply
}
