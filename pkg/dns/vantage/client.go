package vantage

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Client asks one vantage. It is safe for concurrent use.
type Client struct {
	name, url string
	http      *http.Client
	timeout   time.Duration
	// failing is true if the last request failed: that is logged once.
	failing atomic.Bool
}

// NewClient returns a Client of the vantage at an address, such as https://vantage.example:8453. config returns, for each connection, the client's
// certificate and the authorities that verify the vantage's; moreCAs, in PEM, are others. A request takes up to timeout.
func NewClient(name string, at *url.URL, config func(context.Context) (*tls.Config, error), moreCAs []byte, timeout time.Duration) *Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := config(ctx)
		if err != nil {
			return nil, err
		}
		c = c.Clone()
		c.ServerName, c.NextProtos = at.Hostname(), nil
		if len(moreCAs) > 0 {
			c.RootCAs = c.RootCAs.Clone()
			c.RootCAs.AppendCertsFromPEM(moreCAs)
		}
		return (&tls.Dialer{Config: c}).DialContext(ctx, network, address)
	}
	transport := &http.Transport{
		MaxIdleConns: 4, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: maxHeader, DialTLSContext: dial,
	}
	return &Client{
		name: name, url: at.JoinPath(askPath).String(), timeout: timeout,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Name is the vantage's name in SyncStatuses.
func (c *Client) Name() string { return c.name }

// Ask asks for a zone's SOA as clients of the vantage ask. The answers are in the order of the questions. Those that the vantage did not ask
// have an error that IsNotAsked recognizes. Times are ours.
func (c *Client) Ask(ctx context.Context, zone string, questions []Question) []observe.Observation {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	observations := make([]observe.Observation, len(questions))
	at := time.Now()
	for first := 0; first < len(questions); first += maxQuestions {
		some := questions[first:min(first+maxQuestions, len(questions))]
		answers, err := c.send(ctx, request{zone, some})
		if c.failing.Swap(err != nil) != (err != nil) {
			klog.FromContext(ctx).Info("A vantage was asked", "vantage", c.name, "err", err)
		}
		for i, q := range some {
			o := observe.Observation{Server: q.Address, At: at, Rcode: observe.NoReply, Err: ErrUnavailable}
			if err == nil {
				o = answers[i].observation(q, zone, at)
			}
			observations[first+i] = o
		}
	}
	return observations
}

func (c *Client) send(ctx context.Context, q request) ([]answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	reply, err := c.http.Do(post)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", reply.StatusCode)
	}
	return readAnswers(reply.Body, len(q.Questions))
}

// readAnswers reads a response with the given number of answers.
func readAnswers(body io.Reader, want int) ([]answer, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxResponse))
	if err != nil {
		return nil, err
	}
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if len(r.Answers) != want {
		return nil, fmt.Errorf("%d answers to %d questions", len(r.Answers), want)
	}
	return r.Answers, nil
}

// maxNames is far more than the two names of an SOA record take, in bytes of text: answers are kept for each zone and path.
const maxNames = 2 * 4 * 256

// observation reads an answer of a vantage, which may send anything.
func (a answer) observation(q Question, zone string, at time.Time) observe.Observation {
	o := observe.Observation{Server: q.Address, At: at, Rcode: observe.NoReply}
	if a.Failure != "" {
		o.Err = &wire.Error{Op: "query", Server: q.Address.String(), Zone: zone, Err: a.Failure.err()}
		return o
	}
	o.Rcode, o.AA, o.ServerID = a.Rcode&0xfff, a.AA, wire.PrintableID([]byte(a.ServerID))
	o.RTT = time.Duration(min(max(a.Microseconds, 0), time.Minute.Microseconds())) * time.Microsecond
	if a.SOA != nil && a.AA && o.Rcode == dns.RcodeSuccess && len(a.SOA.MName)+len(a.SOA.RName) <= maxNames {
		o.Authoritative, o.SOA, o.Serial = true, *a.SOA, a.SOA.Serial
	}
	return o
}
