package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// sparse is a server that signs only some messages of a transfer, as RFC 8945 section 5.3.1 allows (BIND signs all).
type sparse struct {
	key      Key
	messages []*dns.Msg
	// signed tells which messages are.
	signed func(i int) bool
}

func (s sparse) start(t *testing.T) netip.AddrPort {
	t.Helper()
	return tcpserver.Start(t, func(conn net.Conn) {
		if err := s.serve(conn); err != nil {
			t.Error(err)
		}
	})
}

func (s sparse) serve(nc net.Conn) error {
	raw, err := readMessage(nc, dns.MaxMsgSize)
	if err != nil {
		return err
	}
	query := new(dns.Msg)
	if err := query.Unpack(raw); err != nil {
		return err
	}
	prior := query.IsTsig().MAC
	var pending []byte
	for i, m := range s.messages {
		m = m.Copy()
		m.Id, m.Response, m.Question = query.Id, true, query.Question
		out, err := m.Pack()
		if err != nil {
			return err
		}
		pending = append(pending, out...)
		if s.signed(i) {
			if out, prior, err = s.sign(m, out, pending, prior, i == 0); err != nil {
				return err
			}
			pending = nil
		}
		if err := writeMessage(nc, out); err != nil {
			return nil // The client has seen enough.
		}
	}
	return nil
}

// sign adds a TSIG record to the packed message out. It follows the RFC by itself and uses nothing of the verifier.
func (s sparse) sign(m *dns.Msg, out, pending []byte, prior string, first bool) (signed []byte, mac string, err error) {
	if first {
		m.SetTsig(s.key.Name, s.key.Algorithm, 300, time.Now().Unix())
		return dns.TsigGenerate(m, s.key.Secret, prior, false)
	}
	secret, err := base64.StdEncoding.DecodeString(s.key.Secret)
	if err != nil {
		return nil, "", err
	}
	priorMAC, err := hex.DecodeString(prior)
	if err != nil {
		return nil, "", err
	}
	now := uint64(time.Now().Unix())
	h := hmac.New(sha256.New, secret)
	_ = binary.Write(h, binary.BigEndian, uint16(len(priorMAC)))
	h.Write(priorMAC)
	h.Write(pending)
	_ = binary.Write(h, binary.BigEndian, []uint16{uint16(now >> 32), uint16(now >> 16), uint16(now), 300})
	mac = hex.EncodeToString(h.Sum(nil))
	tsig := &dns.TSIG{
		Hdr:       dns.RR_Header{Name: s.key.Name, Rrtype: dns.TypeTSIG, Class: dns.ClassANY},
		Algorithm: s.key.Algorithm, TimeSigned: now, Fudge: 300, MACSize: 32, MAC: mac, OrigId: m.Id,
	}
	buf := make([]byte, 512)
	n, err := dns.PackRR(tsig, buf, 0, nil, false)
	if err != nil {
		return nil, "", err
	}
	binary.BigEndian.PutUint16(out[10:], uint16(len(m.Extra)+1))
	return append(out, buf[:n]...), mac, nil
}

func TestSparselySignedTransfer(t *testing.T) {
	key := Key{Name: "k.", Algorithm: "hmac-sha256.", Secret: "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}
	long := []string{"S5"}
	for i := range 210 {
		long = append(long, fmt.Sprintf("%c%d", 'a'+i%26, i))
	}
	long = append(long, "S5")
	for name, tc := range map[string]struct {
		lines  []string
		signed func(int) bool
		err    error
	}{
		"all":                  {[]string{"S5", "a1", "b2", "S5"}, func(int) bool { return true }, nil},
		"first and last":       {[]string{"S5", "a1", "b2", "S5"}, func(i int) bool { return i == 0 || i == 3 }, nil},
		"every hundredth":      {long, func(i int) bool { return i%100 == 0 || i == len(long)-1 }, nil},
		"too few":              {long, func(i int) bool { return i == 0 || i == len(long)-1 }, ErrUnsigned},
		"the first is missing": {[]string{"S5", "a1", "b2", "S5"}, func(i int) bool { return i > 0 }, ErrUnsigned},
		"the last is missing":  {[]string{"S5", "a1", "b2", "S5"}, func(i int) bool { return i == 0 || i == 2 }, ErrUnsigned},
	} {
		t.Run(name, func(t *testing.T) {
			server := sparse{key: key, messages: parse(t, tc.lines...), signed: tc.signed}.start(t)
			r, err := Transfer(t.Context(), server, "example.test.", nil, &key)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if err == nil && len(r.Records) != len(tc.lines)-2 {
				t.Errorf("%d records", len(r.Records))
			}
		})
	}
}

// TestReplyWindow: a reply that was kept back or signed by a wrong clock does not count.
func TestReplyWindow(t *testing.T) {
	key := Key{Name: "k.", Algorithm: "hmac-sha512.", Secret: "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}
	query := new(dns.Msg)
	query.SetQuestion("example.test.", dns.TypeSOA)
	query.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
	_, mac, err := dns.TsigGenerate(query, key.Secret, "", false)
	if err != nil {
		t.Fatal(err)
	}
	signed := time.Now()
	reply := parse(t, "S5")[0]
	reply.SetTsig(key.Name, key.Algorithm, 300, signed.Unix())
	raw, _, err := dns.TsigGenerate(reply, key.Secret, mac, false)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	if err := m.Unpack(raw); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]error{
		0: nil, 299 * time.Second: nil, -299 * time.Second: nil, 302 * time.Second: ErrClock, -302 * time.Second: ErrClock,
	} {
		v, err := newVerifier(key, mac)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.verifyReply(raw, m, signed.Add(after)); !errors.Is(err, want) {
			t.Errorf("after %s: %v", after, err)
		}
	}
	for name, other := range map[string]Key{
		"other secret":    {key.Name, key.Algorithm, "b3RoZXI="},
		"other name":      {"other.", key.Algorithm, key.Secret},
		"other algorithm": {key.Name, "hmac-sha256.", key.Secret},
	} {
		v, err := newVerifier(other, mac)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.verifyReply(raw, m, signed); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzVerdict: whatever a server sends, no panic, and nothing passes for signed.
func FuzzVerdict(f *testing.F) {
	key := Key{Name: "k.", Algorithm: "hmac-sha256.", Secret: "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}
	m := new(dns.Msg)
	m.SetQuestion("example.test.", dns.TypeSOA)
	reply := m.Copy()
	reply.Response = true
	reply.Answer = parse(f, "S5 a1")[0].Answer
	reply.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
	raw, _, err := dns.TsigGenerate(reply, base64.StdEncoding.EncodeToString([]byte("other")), "", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:20])
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := newRequest(m, &key)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > 2 {
			binary.BigEndian.PutUint16(raw, req.id)
		}
		_, _ = tsigOffset(raw)
		if _, err := req.parseReply(raw); err == nil {
			t.Fatalf("%x passed", raw)
		}
	})
}
