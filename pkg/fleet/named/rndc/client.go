// Package rndc is a client of named's control channel: it sends commands as rndc(8) does, signed by a key that it shares with
// named.
package rndc

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrAuth says that named and we do not share the control channel's key: its reply does not verify, or it closed the
// connection on the greeting, which is all it does when our signature fails.
var ErrAuth = errors.New("rndc key not accepted")

// CommandError is named's refusal of a command that it understood.
type CommandError struct {
	// Command is the first word of the command.
	Command string
	// Result is BIND's isc_result_t, for example 23 for "not found" and 18 for "already exists".
	Result int
	// Message is named's own text, which can have several lines.
	Message string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("rndc %s: %s", e.Command, strings.ReplaceAll(e.Message, "\n", "; "))
}

// BIND's result codes (lib/isc/include/isc/result.h) that callers distinguish.
const (
	resultExists   = 18
	resultNotFound = 23
)

// NotFound reports whether named does not have the zone that the command named.
func (e *CommandError) NotFound() bool {
	return e.Result == resultNotFound || strings.Contains(e.Message, "no matching zone") ||
		strings.HasSuffix(e.Message, "not found")
}

// Exists reports whether named already has the zone that the command wanted to add.
func (e *CommandError) Exists() bool {
	return e.Result == resultExists || strings.Contains(e.Message, "already exists")
}

// NotLoaded reports whether named has the zone, but no data for it: zonestatus then fails.
func (e *CommandError) NotLoaded() bool { return strings.Contains(e.Message, "zone not loaded") }

// maxMessage is what named itself accepts and sends at most, in bytes.
const maxMessage = 1 << 20

// Client is a connection to named's control channel. It dials when it is first used and again after named or the
// network has closed the connection, and runs one command at a time: 1,000 addzone take about a second.
type Client struct {
	addr string
	key  Key

	mu     sync.Mutex
	conn   net.Conn
	reader *bufio.Reader
	serial uint32
	nonce  string
}

// NewClient returns a client of the control channel at addr ("127.0.0.1:9953") that signs with key.
func NewClient(addr string, key Key) *Client {
	return &Client{addr: addr, key: key}
}

// Close ends the connection. The client can be used again afterwards.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disconnect()
}

func (c *Client) disconnect() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn, c.reader, c.nonce = nil, nil, ""
	return err
}

// Command runs one command line as rndc(8) has them, for example "zonestatus example.com", and returns named's text.
// The error is a *CommandError when named refused it, wraps ErrAuth when the key is wrong, and is a network
// error otherwise; after a network error the command may or may not have been executed.
func (c *Client) Command(ctx context.Context, command string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reused := c.conn != nil
	text, err := c.sendOnce(ctx, command) //lockio:allow the sidecar talks to its own named, one command after the other
	// named closes idle connections; it reads nothing from one that it has closed, so asking again is safe.
	if err != nil && reused && (errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || isReset(err)) {
		text, err = c.sendOnce(ctx, command) //lockio:allow as above
	}
	return text, err
}

func (c *Client) sendOnce(ctx context.Context, command string) (string, error) {
	if err := c.ensureConnected(ctx); err != nil {
		return "", err
	}
	text, err := c.roundTrip(ctx, command)
	if refused := (*CommandError)(nil); err != nil && !errors.As(err, &refused) {
		_ = c.disconnect()
	}
	return text, err
}

// ensureConnected dials and greets: the reply to the command "null" brings the nonce that every later message must repeat.
func (c *Client) ensureConnected(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return fmt.Errorf("connecting to named's control channel: %w", err)
	}
	c.conn, c.reader = conn, bufio.NewReader(conn)
	// named drops a message whose serial and second it has seen before, even from another client.
	var seed [4]byte
	_, _ = rand.Read(seed[:])
	c.serial = binary.BigEndian.Uint32(seed[:])
	if _, err := c.roundTrip(ctx, "null"); err != nil {
		_ = c.disconnect()
		if errors.Is(err, io.EOF) || isReset(err) {
			return fmt.Errorf("%w: named closed the connection on the greeting", ErrAuth)
		}
		return err
	}
	return nil
}

func (c *Client) roundTrip(ctx context.Context, command string) (string, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func(conn net.Conn) func() { return func() { _ = conn.Close() } }(c.conn))
	defer stop()
	if _, err := c.conn.Write(c.encodeRequest(command, time.Now())); err != nil {
		return "", fmt.Errorf("sending to named's control channel: %w", err)
	}
	return c.readReply(command)
}

// encodeRequest frames and signs one command: u32 length, u32 version 1, then nested tables.
func (c *Client) encodeRequest(command string, now time.Time) []byte {
	c.serial++
	ctrl := appendString(nil, "_ser", strconv.FormatUint(uint64(c.serial), 10))
	ctrl = appendString(ctrl, "_tim", strconv.FormatInt(now.Unix(), 10))
	ctrl = appendString(ctrl, "_exp", strconv.FormatInt(now.Add(time.Minute).Unix(), 10))
	if c.nonce != "" {
		ctrl = appendString(ctrl, "_nonce", c.nonce)
	}
	body := appendValue(nil, "_ctrl", typeTable, ctrl)
	body = appendValue(body, "_data", typeTable, appendString(nil, "type", command))

	auth := appendValue(nil, "hsha", typeBinary, c.sign(body))
	message := appendValue(make([]byte, 8, 8+len(body)+128), "_auth", typeTable, auth)
	message = append(message, body...)
	binary.BigEndian.PutUint32(message, uint32(len(message)-4)) //nolint:gosec // far below 4 GiB
	binary.BigEndian.PutUint32(message[4:], 1)
	return message
}

// sign returns one byte for the algorithm and the base64 of the HMAC, padded with NUL to 88 bytes.
func (c *Client) sign(body []byte) []byte {
	mac := hmac.New(c.key.newHash(), c.key.Secret)
	mac.Write(body)
	out := make([]byte, 89)
	out[0] = c.key.algorithmCode()
	base64.StdEncoding.Encode(out[1:], mac.Sum(nil))
	return out
}

func (c *Client) readReply(command string) (string, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.reader, length[:]); err != nil {
		return "", fmt.Errorf("reading from named's control channel: %w", err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < 4 || n > maxMessage {
		return "", fmt.Errorf("named's control channel sent a message of %d bytes", n)
	}
	message := make([]byte, n)
	if _, err := io.ReadFull(c.reader, message); err != nil {
		return "", fmt.Errorf("reading from named's control channel: %w", err)
	}
	reply, err := parseReply(message[4:])
	if err != nil {
		return "", err
	}
	if !hmac.Equal(reply.signature, c.sign(reply.signed)) {
		return "", fmt.Errorf("%w: the reply's signature does not verify", ErrAuth)
	}
	c.nonce = reply.nonce
	if reply.result != 0 {
		word, _, _ := strings.Cut(command, " ")
		return "", &CommandError{Command: word, Result: reply.result, Message: reply.explanation()}
	}
	return reply.text, nil
}
