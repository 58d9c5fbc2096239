package bindcar

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// ClientOptions configure a Client.
type ClientOptions struct {
	// Timeout of one request; 30 s when 0.
	Timeout time.Duration
	// TLS returns the client's certificate and the authorities that verify those of sidecars, for each new connection. Without it
	// the client speaks plain HTTP, which is for tests.
	TLS func(context.Context) (*tls.Config, error)
	// Gate decides which addresses sidecars may have, and counts connections with those of one namespace; nil permits all.
	Gate *outbound.Gate
}

// Client speaks to the sidecars of any number of pods. It is safe for concurrent use. Its errors are *Error.
type Client struct {
	http *http.Client
	// streams is like http, on the same connections, without a timeout for the response body.
	streams *http.Client
	// maxSilence is how long a stream may send nothing.
	maxSilence time.Duration
	// secure says that HTTPS is spoken.
	secure bool
	gate   *outbound.Gate
}

// idleConnections is how many connections to each sidecar are kept open: as many as a controller that works on many zones
// at once uses. A new one costs both ends a handshake, which takes longer than adding a zone.
const idleConnections = 32

// allIdleConnections is how many connections to all sidecars are kept open without a request: half of those that one namespace may have,
// so that idle ones never keep others from being made.
const allIdleConnections = 512

// maxRest is how much of a response that nobody wants is read, in bytes: the connection of one that was not read to its end is closed.
const maxRest = 4 << 10

// maxHeader is for what comes before the body of a response, in bytes. A field of a few bytes takes some hundred in memory.
const maxHeader = 16 << 10

// noRedirect has a redirection be the response. A sidecar may be anybody's program: following it would send a request, with our certificate,
// to the sidecar of somebody else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// NewClient returns a client that keeps its connections open.
func NewClient(options ClientOptions) *Client {
	options.Timeout = cmp.Or(options.Timeout, 30*time.Second)
	timeout := options.Timeout
	connections := &http.Transport{
		DialContext:            options.dial,
		MaxIdleConns:           allIdleConnections,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        90 * time.Second,
		ResponseHeaderTimeout:  timeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	if options.TLS != nil {
		connections.DialTLSContext = options.dialTLS
	}
	return &Client{
		http:       &http.Client{Transport: connections, Timeout: timeout, CheckRedirect: noRedirect},
		streams:    &http.Client{Transport: connections, CheckRedirect: noRedirect},
		maxSilence: 3 * HeartbeatInterval,
		secure:     options.TLS != nil,
		gate:       options.Gate,
	}
}

func (c *Client) endpointURL(server Address, path string) string {
	if !c.secure {
		return "http://" + server.Addr.String() + PathPrefix + path
	}
	return "https://" + net.JoinHostPort(server.hostname(), strconv.Itoa(int(server.Addr.Port()))) + PathPrefix + path
}

// CreateZone adds a zone; IsExists reports that it was there, and stays as it is.
func (c *Client) CreateZone(ctx context.Context, server Address, zone CreateZone) error {
	return c.sendRequest(ctx, http.MethodPost, server, "/zones", zone, nil)
}

// DeleteZone removes a zone and its files; IsNotFound reports that it was not there, or has the data of another DNSZone than
// owner; without one it is deleted whoever owns it. A zone without a known owner is anybody's. Sidecars of earlier versions go by the owner's
// name alone. The public sidecar answers 500 for a zone that is not there, so DeleteZone checks for it; it knows no owners.
func (c *Client) DeleteZone(ctx context.Context, server Address, zone string, owner Owner) error {
	path := "/zones/" + url.PathEscape(zone)
	if owner != (Owner{}) {
		path += "?" + url.Values{"owner": {owner.Name}, "ownerUID": {owner.UID}}.Encode()
	}
	err := c.sendRequest(ctx, http.MethodDelete, server, path, nil, nil)
	if hasCode(err, http.StatusInternalServerError) {
		if _, missing := c.Zone(ctx, server, zone); IsNotFound(missing) {
			return missing
		}
	}
	return err
}

// PatchZone changes whom a zone notifies, who may transfer it, where a secondary transfers from, or how it is signed.
func (c *Client) PatchZone(ctx context.Context, server Address, zone string, patch PatchZone) error {
	return c.sendRequest(ctx, http.MethodPatch, server, "/zones/"+url.PathEscape(zone), patch, nil)
}

// Zones lists all zones of the server.
func (c *Client) Zones(ctx context.Context, server Address) (ZoneList, error) {
	var list ZoneList
	err := c.sendRequest(ctx, http.MethodGet, server, "/zones", nil, &list)
	return list, err
}

// Zone reads one zone.
func (c *Client) Zone(ctx context.Context, server Address, zone string) (Zone, error) {
	var out Zone
	err := c.sendRequest(ctx, http.MethodGet, server, "/zones/"+url.PathEscape(zone), nil, &out)
	return out, err
}

// Command runs reload, freeze, thaw, notify or retransfer on a zone and returns named's output.
func (c *Client) Command(ctx context.Context, server Address, zone, command string) (string, error) {
	var answer Answer
	err := c.sendRequest(ctx, http.MethodPost, server, "/zones/"+url.PathEscape(zone)+"/"+command, nil, &answer)
	return answer.Details, err
}

// CheckDS tells a server that signs a zone whether a key has a DS record in the zone above.
func (c *Client) CheckDS(ctx context.Context, server Address, zone string, key CheckDS) error {
	return c.sendRequest(ctx, http.MethodPost, server, "/zones/"+url.PathEscape(zone)+"/checkds", key, nil)
}

// Statistics reads the counters of the sidecar's named.
func (c *Client) Statistics(ctx context.Context, server Address) (Statistics, error) {
	var stats Statistics
	err := c.sendRequest(ctx, http.MethodGet, server, "/statistics", nil, &stats)
	return stats, err
}

// Keys reads the names of the TSIG keys that the server knows.
func (c *Client) Keys(ctx context.Context, server Address) (ServerKeys, error) {
	var keys ServerKeys
	err := c.sendRequest(ctx, http.MethodGet, server, "/server/keys", nil, &keys)
	return keys, err
}

// Ready is nil when the sidecar and its named answer.
func (c *Client) Ready(ctx context.Context, server Address) error {
	_, err := c.Readiness(ctx, server)
	return err
}

// Readiness is what named says of itself. It is an error when the sidecar or named does not answer.
func (c *Client) Readiness(ctx context.Context, server Address) (Readiness, error) {
	var readiness Readiness
	err := c.sendRequest(ctx, http.MethodGet, server, "/ready", nil, &readiness)
	readiness.Version = wire.PrintableID([]byte(readiness.Version))
	return readiness, err
}

// sendRequest sends a request with in as its body and decodes the response into out; either may be nil.
func (c *Client) sendRequest(ctx context.Context, method string, server Address, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
	}
	response, err := c.doRequest(ctx, c.http, method, server, path, body)
	if err != nil {
		return err
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, response.Body, maxRest)
		_ = response.Body.Close()
	}()
	return decodeResponse(server.Namespace, response, out)
}

// doRequest sends a request by one of the two clients. A new connection is charged to the namespace of the sidecar's instance.
func (c *Client) doRequest(ctx context.Context, client *http.Client, method string, server Address, path string, body []byte) (*http.Response, error) {
	ctx = context.WithValue(ctx, accountKey{}, c.gate.Sidecar(server.Namespace, server.Addr.Addr()))
	request, err := http.NewRequestWithContext(ctx, method, c.endpointURL(server, path), bytes.NewReader(body))
	if err != nil {
		return nil, unreachable(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	countCall(method, response)
	if err != nil {
		if urlErr, ok := errors.AsType[*url.Error](err); ok {
			err = urlErr.Err
		}
		return nil, connectionError(err)
	}
	return response, nil
}
