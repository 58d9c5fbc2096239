package vantage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/mtls"
	"github.com/lockstep-dns/lockstep/test/named"
)

const zone = "example.test."

// optionsFor are a vantage's with a certificate for localhost.
func optionsFor(t *testing.T, authority certs.State) *Options {
	t.Helper()
	data, err := authority.Issue(time.Now(), certs.Subject{DNSNames: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mtls.WriteFiles(t, dir, data)
	o := NewOptions(bindcar.APIServerIdentity)
	o.ProbeAddress = ""
	o.CertFile, o.KeyFile, o.ClientCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return o
}

// serve runs a handler with the vantage's TLS.
func serve(t *testing.T, o *Options, handler http.Handler) *url.URL {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = nil
	config, err := o.tlsConfig()
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	at, err := url.Parse(strings.Replace(s.URL, "127.0.0.1", "localhost", 1))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The API server alone is answered: it learns the zone's SOA, and which server has it. Whoever has no certificate, or that of another component,
// learns nothing.
func TestWhoIsAnswered(t *testing.T) {
	authority := mtls.NewAuthority(t)
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	o := optionsFor(t, authority)
	o.Ports = []int{int(server.Addr.Port())}
	at := serve(t, o, newServer(o, nil))
	apiserver := mtls.Caller(t, authority, bindcar.APIServerIdentity)
	ask := func(config func(context.Context) (*tls.Config, error)) []observe.Observation {
		return NewClient("berlin", at, config, nil, 10*time.Second).Ask(t.Context(), zone, []Question{{server.Addr, false}, {server.Addr, true}})
	}
	for _, a := range ask(apiserver) {
		if !a.Authoritative || a.Serial != 7 || a.ServerID == "" || a.SOA.Minimum != 60 || a.RTT <= 0 || a.Err != nil {
			t.Errorf("%+v", a)
		}
	}
	for name, config := range map[string]func(context.Context) (*tls.Config, error){
		"without a certificate": mtls.WithCertificate(apiserver, nil),
		"another component":     mtls.Caller(t, authority, bindcar.ControllerIdentity),
		"the key of a sidecar":  mtls.WithCertificate(apiserver, mtls.Instance(t, authority, "dns", "primary-0")),
		"another authority":     mtls.Caller(t, mtls.NewAuthority(t), bindcar.APIServerIdentity),
	} {
		for _, a := range ask(config) {
			if a.Rcode != observe.NoReply || !IsNotAsked(a.Err) {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// A stolen certificate of the API server has a vantage ask for SOA records at permitted addresses and ports, so many in a second, and do nothing else.
func TestWhatIsAsked(t *testing.T) {
	authority := mtls.NewAuthority(t)
	o := optionsFor(t, authority)
	o.QuestionRate = 1
	s := newServer(o, outbound.NewGate(nil, outbound.Limits{}))
	post := func(body string) (int, response) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, askPath, strings.NewReader(body))
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{URIs: []*url.URL{{Scheme: "spiffe", Host: "lockstep.internal", Path: "/apiserver"}}, NotAfter: time.Now().Add(time.Hour)}}}}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var answers response
		_ = json.Unmarshal(w.Body.Bytes(), &answers)
		return w.Code, answers
	}
	for name, c := range map[string]struct{ question, want string }{
		"itself":        {`{"address":"127.0.0.1:53"}`, string(failureForbidden)},
		"a cloud":       {`{"address":"169.254.169.254:53","tcp":true}`, string(failureForbidden)},
		"another port":  {`{"address":"192.0.2.1:22","tcp":true}`, string(failurePort)},
		"IPv6 for IPv4": {`{"address":"[::ffff:127.0.0.1]:53"}`, string(failureForbidden)},
	} {
		if code, r := post(`{"zone":"example.test.","questions":[` + c.question + `]}`); code != http.StatusOK || len(r.Answers) != 1 || string(r.Answers[0].Failure) != c.want {
			t.Errorf("%s: %d, %+v", name, code, r)
		}
	}
	many := strings.Repeat(`{"address":"127.0.0.1:53"},`, maxQuestions)
	for name, body := range map[string]string{
		"no JSON": "zone", "not a name": `{"zone":"a..b."}`, "a relative name": `{"zone":"example.test"}`,
		"too many questions": `{"zone":"example.test.","questions":[` + many + `{"address":"127.0.0.1:53"}]}`,
		"too long":           `{"zone":"` + strings.Repeat("a", maxRequest) + `"}`,
		"a host name":        `{"zone":"example.test.","questions":[{"address":"kubernetes:443"}]}`,
	} {
		if code, _ := post(body); code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, code)
		}
	}
	limited := 0
	for range 3 { // The burst is one request's.
		_, r := post(`{"zone":"example.test.","questions":[` + strings.TrimSuffix(many, ",") + `]}`)
		for _, a := range r.Answers {
			if a.Failure == failureLimit {
				limited++
			}
		}
	}
	if limited < maxQuestions {
		t.Errorf("%d questions were refused for their number", limited)
	}
}

// A hostile vantage can say that a server answers something else. It cannot put words into a SyncStatus, nor times, nor answers for what was not asked.
func TestHostileVantage(t *testing.T) {
	authority := mtls.NewAuthority(t)
	o := optionsFor(t, authority)
	soa := &rrset.SOA{MName: "x.", Serial: 9}
	encode := func(answers ...answer) string {
		raw, err := json.Marshal(response{answers})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	question := Question{netip.MustParseAddrPort("192.0.2.1:53"), false}
	for name, c := range map[string]struct {
		status int
		body   string
		good   func(observe.Observation) bool
	}{
		"no JSON":        {200, "<html>", nil},
		"another number": {200, encode(answer{}, answer{}), nil},
		"an error":       {500, encode(answer{AA: true, SOA: soa}), nil},
		"a redirection":  {307, "", nil},
		"without an end": {200, `{"answers":[{"serverID":"` + strings.Repeat("x", 2*maxResponse) + `"}]}`, nil},
		"its own words": {200, encode(answer{Failure: "call 555-0100"}), func(o observe.Observation) bool {
			return errors.Is(o.Err, errOther) && !strings.Contains(o.Message(), "555")
		}},
		"a terminal":       {200, encode(answer{AA: true, SOA: soa, ServerID: "\x1b[31m"}), func(o observe.Observation) bool { return o.ServerID == "0x1b5b33316d" }},
		"a long name":      {200, encode(answer{AA: true, SOA: soa, ServerID: strings.Repeat("x", 1000)}), func(o observe.Observation) bool { return len(o.ServerID) == 64 }},
		"an SOA, no AA":    {200, encode(answer{SOA: soa}), func(o observe.Observation) bool { return !o.Authoritative && o.Serial == 0 }},
		"a negative time":  {200, encode(answer{AA: true, SOA: soa, Microseconds: -1 << 60}), func(o observe.Observation) bool { return o.RTT == 0 }},
		"an SOA of 200 kB": {200, encode(answer{AA: true, SOA: &rrset.SOA{MName: strings.Repeat("x", 200_000), Serial: 9}}), func(o observe.Observation) bool { return !o.Authoritative && o.SOA == rrset.SOA{} }},
		"an odd rcode":     {200, encode(answer{Rcode: -7, SOA: soa}), func(o observe.Observation) bool { return o.Rcode >= 0 && o.Rcode < 1<<12 && !o.Authoritative }},
		"refused":          {200, encode(answer{Failure: failureRefused}), func(o observe.Observation) bool { return errors.Is(o.Err, syscall.ECONNREFUSED) }},
	} {
		at := serve(t, o, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.test/")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		before := time.Now()
		got := NewClient("berlin", at, mtls.Caller(t, authority, bindcar.APIServerIdentity), nil, 10*time.Second).Ask(t.Context(), zone, []Question{question})
		if len(got) != 1 || got[0].Server != question.Address || got[0].At.Before(before) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if c.good == nil && !IsNotAsked(got[0].Err) || c.good != nil && !c.good(got[0]) {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}

// Every flag that is wrong is named, and without certificates there is no vantage.
func TestValidate(t *testing.T) {
	o := NewOptions("me")
	o.Ports, o.QuestionRate, o.Deadline = []int{70000}, 0, time.Minute
	err := o.Validate()
	for _, want := range []string{"--ports", "--max-queries-per-second", "--deadline"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if err := NewOptions("me").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--tls-cert-file") {
		t.Errorf("it runs without a certificate: %v", err)
	}
}
