package bindcar

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ClientOptions configure a Client.
type ClientOptions struct {
	// TokenFile holds the ServiceAccount token to show, made for the audience Audience. It is read again as the kubelet
	// renews it. Without a file no token is sent.
	TokenFile string
	// Timeout of one request; 30 s when 0.
	Timeout time.Duration
	// Roots are the authorities whose certificates sidecars must show; they are asked for at every new connection. Without
	// it HTTP is spoken: only where nobody listens in, on loopback.
	Roots func(context.Context) (*x509.CertPool, error)
}

// Client speaks to the sidecars of any number of pods. It is safe for concurrent use. Its errors are *Error.
type Client struct {
	http *http.Client
	// streams is like http, on the same connections, without a limit to how long an answer takes.
	streams *http.Client
	// silence is how long a stream may say nothing.
	silence time.Duration
	token   *tokenFile
	// secure tells that HTTPS is spoken.
	secure bool
}

// idleConnections to each sidecar are kept open: as many as a controller that goes over many zones at once uses. Another
// costs both sides a handshake, which takes longer than adding a zone.
const idleConnections = 32

// NewClient makes a client. Connections are kept open.
func NewClient(options ClientOptions) *Client {
	timeout := options.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost:   idleConnections,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: timeout,
	}
	if options.Roots != nil {
		transport.DialTLSContext = options.dialTLS
	}
	return &Client{
		http:    &http.Client{Transport: transport, Timeout: timeout},
		streams: &http.Client{Transport: transport},
		silence: 3 * heartbeat,
		token:   &tokenFile{path: options.TokenFile},
		secure:  options.Roots != nil,
	}
}

// url is where a path of the API is.
func (c *Client) url(server Server, path string) string {
	if !c.secure {
		return "http://" + server.Addr.String() + apiPrefix + path
	}
	return "https://" + net.JoinHostPort(server.host(), strconv.Itoa(int(server.Addr.Port()))) + apiPrefix + path
}

// CreateZone adds a zone; IsExists tells that it was there.
func (c *Client) CreateZone(ctx context.Context, server Server, zone CreateZone) error {
	return c.call(ctx, http.MethodPost, server, "/zones", zone, nil)
}

// DeleteZone removes a zone and its files; IsNotFound tells that it was not there. The public sidecar answers 500 then, so
// that the zone is looked for.
func (c *Client) DeleteZone(ctx context.Context, server Server, zone string) error {
	err := c.call(ctx, http.MethodDelete, server, "/zones/"+url.PathEscape(zone), nil, nil)
	if hasCode(err, http.StatusInternalServerError) {
		if _, missing := c.Zone(ctx, server, zone); IsNotFound(missing) {
			return missing
		}
	}
	return err
}

// PatchZone changes who is notified and who may transfer, or where a secondary transfers from.
func (c *Client) PatchZone(ctx context.Context, server Server, zone string, patch PatchZone) error {
	return c.call(ctx, http.MethodPatch, server, "/zones/"+url.PathEscape(zone), patch, nil)
}

// Zones lists what the server has.
func (c *Client) Zones(ctx context.Context, server Server) (ZoneList, error) {
	var list ZoneList
	err := c.call(ctx, http.MethodGet, server, "/zones", nil, &list)
	return list, err
}

// Zone describes one zone.
func (c *Client) Zone(ctx context.Context, server Server, zone string) (Zone, error) {
	var out Zone
	err := c.call(ctx, http.MethodGet, server, "/zones/"+url.PathEscape(zone), nil, &out)
	return out, err
}

// Command runs reload, freeze, thaw, notify or retransfer on a zone and returns named's words.
func (c *Client) Command(ctx context.Context, server Server, zone, command string) (string, error) {
	var answer Answer
	err := c.call(ctx, http.MethodPost, server, "/zones/"+url.PathEscape(zone)+"/"+command, nil, &answer)
	return answer.Details, err
}

// Statistics are the counters of the sidecar's named.
func (c *Client) Statistics(ctx context.Context, server Server) (Statistics, error) {
	var stats Statistics
	err := c.call(ctx, http.MethodGet, server, "/statistics", nil, &stats)
	return stats, err
}

// Keys tells which TSIG keys the server knows.
func (c *Client) Keys(ctx context.Context, server Server) (ServerKeys, error) {
	var keys ServerKeys
	err := c.call(ctx, http.MethodGet, server, "/server/keys", nil, &keys)
	return keys, err
}

// Ready returns nil when the sidecar and its named answer.
func (c *Client) Ready(ctx context.Context, server Server) error {
	return c.call(ctx, http.MethodGet, server, "/ready", nil, nil)
}

// call sends one request; a token that was refused is read anew, once.
func (c *Client) call(ctx context.Context, method string, server Server, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
	}
	target := c.url(server, path)
	err := c.send(ctx, method, target, body, out)
	if hasCode(err, http.StatusUnauthorized) && c.token.forget() {
		err = c.send(ctx, method, target, body, out)
	}
	return err
}

// maxAnswer is more than the list of 100,000 zones takes, in bytes.
const maxAnswer = 64 << 20

func (c *Client) send(ctx context.Context, method, target string, body []byte, out any) error {
	response, err := c.open(ctx, c.http, method, target, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return read(response, out)
}

// open sends one request and returns the answer, its body unread.
func (c *Client) open(ctx context.Context, client *http.Client, method, target string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, unreachable(err)
	}
	token, err := c.token.read()
	if err != nil {
		return nil, unreachable(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		var urlErr *url.Error
		if errors.As(err, &urlErr) {
			err = urlErr.Err
		}
		return nil, unreachable(err)
	}
	return response, nil
}

func read(response *http.Response, out any) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return unreachable(err)
	}
	if response.StatusCode >= 300 {
		var failure Failure
		if json.Unmarshal(text, &failure) != nil {
			failure.Error = http.StatusText(response.StatusCode)
		}
		return newError(response.StatusCode, failure)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &Error{Code: response.StatusCode, Reason: newError(http.StatusInternalServerError, Failure{}).Reason,
			Message: "sent an answer that is not JSON", Details: err.Error(), Err: err}
	}
	return nil
}
