package wire

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

func TestErrorText(t *testing.T) {
	for name, tc := range map[string]struct {
		err       Error
		text      string
		reason    string
		transient bool
	}{
		"refused":      {Error{Rcode: dns.RcodeRefused}, "answered REFUSED", "Refused", false},
		"SERVFAIL":     {Error{Rcode: dns.RcodeServerFailure}, "answered SERVFAIL", "ServFail", true},
		"not hosted":   {Error{Rcode: dns.RcodeNotAuth}, "answered NOTAUTH: the server does not host the zone or has not loaded it", "NotLoaded", true},
		"not zone":     {Error{Rcode: dns.RcodeNotZone}, "answered NOTZONE: a name lies outside the zone", "NotZone", false},
		"unheard of":   {Error{Rcode: 3000}, "answered RCODE3000", "UnexpectedRcode", false},
		"bad key":      {Error{Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadKey}, "BADKEY: the server does not know the key", "BadKey", false},
		"bad sig":      {Error{Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadSig}, "BADSIG: the server has another secret for the key", "BadSignature", false},
		"bad time":     {Error{Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadTime}, "BADTIME: the server's clock differs from ours by more than five minutes", "BadTime", true},
		"bad trunc":    {Error{Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadTrunc}, "the server refused the signature with TSIG error BADTRUNC", "BadSignature", false},
		"unsigned":     {Error{Err: ErrUnsigned}, "the reply to a signed request is not signed", "BadSignature", false},
		"no key":       {Error{Rcode: dns.RcodeNotAuth, Err: ErrUnsigned}, "answered NOTAUTH without a signature: the server does not know the key, has another secret for it, or its clock differs from ours by more than five minutes", "BadKey", false},
		"unsigned, no": {Error{Rcode: dns.RcodeRefused, Err: ErrUnsigned}, "answered REFUSED (the reply to a signed request is not signed)", "Refused", false},
		"time-out":     {Error{Err: os.ErrDeadlineExceeded}, "no answer in time", "Timeout", true},
		"deadline":     {Error{Err: context.DeadlineExceeded}, "no answer in time", "Timeout", true},
		"canceled":     {Error{Err: context.Canceled}, "canceled", "Unreachable", true},
		"refused port": {Error{Err: os.NewSyscallError("read", syscall.ECONNREFUSED)}, "connection refused", "ConnectionRefused", true},
		"no route":     {Error{Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, "no route to the server", "Unreachable", true},
		"hung up":      {Error{Err: io.EOF}, "the server closed the connection", "Unreachable", true},
		"strange":      {Error{Err: fmt.Errorf("%w: odd", ErrReply)}, "the reply does not match the request: odd", "BadReply", true},
		"unsendable":   {Error{Err: fmt.Errorf("%w: odd", ErrUnsendable)}, "the message cannot be sent: odd", "Unsendable", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := tc.err
			e.Op, e.Server, e.Zone = "update", "192.0.2.1:53", "example.test."
			err := fmt.Errorf("wrapped: %w", &e)
			var got *Error
			if !errors.As(err, &got) {
				t.Fatal("not found")
			}
			if want := "update of example.test. at 192.0.2.1:53: " + tc.text; got.Error() != want {
				t.Errorf("%q, want %q", got, want)
			}
			if got.Reason() != tc.reason || got.Transient() != tc.transient {
				t.Errorf("reason %s, transient %t", got.Reason(), got.Transient())
			}
		})
	}
}

// fullAccount returns an account that has its only connection.
func fullAccount(t *testing.T) *outbound.Account {
	t.Helper()
	a := outbound.NewGate(func(netip.Addr) bool { return true }, outbound.Limits{}).Account("team", "provider", 1)
	open, err := a.Dial(t.Context(), "udp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Close() })
	return a
}

// TestLocalErrors: what fails before anything is sent is not the server's fault, and what fails afterwards is not ours.
func TestLocalErrors(t *testing.T) {
	server, broken := netip.MustParseAddrPort("127.0.0.1:1"), &Key{Name: "a..b.", Algorithm: "hmac-sha256.", Secret: "c2VjcmV0"}
	_, query := Query(t.Context(), server, "example.test.", dns.TypeSOA, WithKey(broken))
	_, name := Query(t.Context(), server, "a..b.", dns.TypeSOA)
	_, transfer := Transfer(t.Context(), server, "example.test.", nil, broken)
	_, prepared := (&Conn{server: server, key: broken}).Prepare(new(dns.Msg).SetUpdate("example.test."))
	full, done := context.WithCancel(outbound.WithAccount(t.Context(), fullAccount(t)))
	done()
	_, tcp := Transfer(full, server, "example.test.", nil, nil)
	_, udp := Query(full, server, "example.test.", dns.TypeSOA)
	for _, err := range []error{tcp, udp} {
		if err == nil || !strings.Contains(err.Error(), "has 1 connections") {
			t.Errorf("%v does not name the limit", err)
		}
	}
	for what, err := range map[string]error{
		"no connection over TCP": tcp, "no connection over UDP": udp,
		"query": query, "name": name, "transfer": transfer, "update": prepared, "notify": Notify(t.Context(), server, "example.test.", 1, broken),
		"length": writeMessage(io.Discard, make([]byte, dns.MaxMsgSize+1)),
		"files":  &Error{Err: os.NewSyscallError("socket", syscall.EMFILE)},
	} {
		if !IsLocal(err) {
			t.Errorf("%s: %v counts as the server's failure", what, err)
		}
	}
	_, refused := Query(t.Context(), server, "example.test.", dns.TypeSOA)
	for _, err := range []error{nil, refused, &Error{Err: io.EOF}, &Error{Err: ErrReply}, &Error{Rcode: dns.RcodeRefused}} {
		if IsLocal(err) {
			t.Errorf("%v counts as ours", err)
		}
	}
}

// TestSecretStaysSecret: no way of printing a key tells its secret.
func TestSecretStaysSecret(t *testing.T) {
	key := Key{Name: "update.", Algorithm: "hmac-sha256.", Secret: "c2VjcmV0"}
	holder := struct{ Key *Key }{&key}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", key, &key, struct{ Key Key }{key})
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "key", key, "pointer", &key)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "key", key, "holder", holder)
	if err := json.NewEncoder(&out).Encode(holder); err != nil {
		t.Fatal(err)
	}
	bad := key
	bad.Secret = "not base64!"
	fmt.Fprintln(&out, bad.Validate())
	if strings.Contains(out.String(), key.Secret) || strings.Contains(out.String(), bad.Secret) {
		t.Errorf("told:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "update. (hmac-sha256.)") {
		t.Errorf("nothing told:\n%s", out.String())
	}
}

func TestKeyValidate(t *testing.T) {
	good := Key{Name: "a.b.update.", Algorithm: "hmac-sha512.", Secret: "c2VjcmV0"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, tc := range map[string]struct {
		key  Key
		told []string
	}{
		"relative name": {Key{"update", good.Algorithm, good.Secret}, []string{"key name"}},
		"upper case":    {Key{"Update.", good.Algorithm, good.Secret}, []string{"key name"}},
		"MD5":           {Key{good.Name, dns.HmacMD5, good.Secret}, []string{"algorithm"}},
		"empty secret":  {Key{good.Name, good.Algorithm, ""}, []string{"secret"}},
		"nothing":       {Key{}, []string{"key name", "algorithm", "secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.key.Validate()
			for _, told := range tc.told {
				if err == nil || !strings.Contains(err.Error(), told) {
					t.Errorf("error %v does not tell about the %s", err, told)
				}
			}
		})
	}
}

// A server may call itself anything: what is not printable is shown as bytes, and not more than a line of it.
func TestServerNames(t *testing.T) {
	for raw, want := range map[string]string{"": "", "fra2.example": "fra2.example", "a\x1b[31m": "0x611b5b33316d", strings.Repeat("x", 300): strings.Repeat("x", 64)} {
		m := new(dns.Msg)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: hex.EncodeToString([]byte(raw))}}
		if got := NSID(m); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}
