package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/miekg/dns"
)

// Errors of signature checks. They are wrapped in an *Error.
var (
	// ErrUnsigned means that the reply to a signed request has no signature.
	ErrUnsigned = errors.New("the reply to a signed request is not signed")
	// ErrSignature means that the reply's signature does not match the reply and our key.
	ErrSignature = errors.New("the reply's signature is not valid")
	// ErrClock means that the reply was signed outside the permitted time window.
	ErrClock = errors.New("the reply was signed too long ago or in the future: the clocks differ")
)

// fudge is the permitted difference of clocks in seconds (RFC 8945 section 10 recommends 300).
const fudge = 300

// maxUnsigned is how many consecutive messages of a transfer may lack a signature (RFC 8945 section 5.3.1).
const maxUnsigned = 99

func hmacHash(algorithm string) func() hash.Hash {
	switch algorithm {
	case dns.HmacSHA224:
		return sha256.New224
	case dns.HmacSHA256:
		return sha256.New
	case dns.HmacSHA384:
		return sha512.New384
	case dns.HmacSHA512:
		return sha512.New
	}
	return nil
}

// replyVerifier checks the signatures of the replies to one signed request, for a transfer those of every message in turn.
type replyVerifier struct {
	key Key
	// mac is that of the request, later that of the last signed message.
	mac []byte
	// unsigned holds the messages since the last signed one, count says how many.
	unsigned []byte
	count    int
	// later is true once the first reply was verified: from then on only the timers are signed with the message.
	later bool
}

func newVerifier(key Key, requestMAC string) (*replyVerifier, error) {
	mac, err := hex.DecodeString(requestMAC)
	if err != nil {
		return nil, fmt.Errorf("decoding the request's MAC: %w", err)
	}
	return &replyVerifier{key: key, mac: mac}, nil
}

// verifyReply verifies one reply, given as it came (raw) and parsed.
func (v *replyVerifier) verifyReply(raw []byte, m *dns.Msg, now time.Time) error {
	tsig := m.IsTsig()
	if tsig == nil {
		if !v.later || v.count == maxUnsigned {
			return ErrUnsigned
		}
		v.count++
		v.unsigned = append(v.unsigned, raw...)
		return nil
	}
	if tsig.Error == dns.RcodeBadKey || tsig.Error == dns.RcodeBadSig {
		return nil // Such replies cannot be signed (RFC 8945 section 5.3.2); the caller reports tsig.Error.
	}
	if dns.CanonicalName(tsig.Hdr.Name) != v.key.Name || dns.CanonicalName(tsig.Algorithm) != v.key.Algorithm {
		return fmt.Errorf("%w: signed with another key or algorithm", ErrSignature)
	}
	mac, err := hex.DecodeString(tsig.MAC)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	sum, err := v.computeMAC(raw, tsig)
	if err != nil {
		return err
	}
	if !hmac.Equal(sum, mac) {
		return ErrSignature
	}
	if d := now.Unix() - int64(tsig.TimeSigned); tsig.Error == 0 && (d > int64(tsig.Fudge) || -d > int64(tsig.Fudge)) { //nolint:gosec // 48 bits
		return ErrClock
	}
	v.mac, v.unsigned, v.count, v.later = mac, nil, 0, true
	return nil
}

// lastWasSigned must be true at the end of a transfer: its last message is signed.
func (v *replyVerifier) lastWasSigned() bool { return v.later && v.count == 0 }

// computeMAC is the MAC that the message must have (RFC 8945 sections 4.3 and 5.3.1).
func (v *replyVerifier) computeMAC(raw []byte, tsig *dns.TSIG) ([]byte, error) {
	end, err := tsigOffset(raw)
	if err != nil {
		return nil, err
	}
	secret, err := base64.StdEncoding.DecodeString(v.key.Secret)
	if err != nil {
		return nil, fmt.Errorf("the secret of key %s is not base64", v.key.Name)
	}
	newHash := hmacHash(v.key.Algorithm)
	if newHash == nil {
		return nil, fmt.Errorf("key %s: unknown algorithm %q", v.key.Name, v.key.Algorithm)
	}
	stripped := bytes.Clone(raw[:end])
	binary.BigEndian.PutUint16(stripped[0:], tsig.OrigId)
	binary.BigEndian.PutUint16(stripped[10:], uint16(countAt(raw, 10)-1)) //nolint:gosec // 16 bits

	h := hmac.New(newHash, secret)
	h.Write(binary.BigEndian.AppendUint16(nil, uint16(len(v.mac)))) //nolint:gosec // at most 64
	h.Write(v.mac)
	h.Write(v.unsigned)
	h.Write(stripped)
	if v.later {
		h.Write(tsigTimers(tsig))
	} else {
		variables, err := tsigVariables(tsig)
		if err != nil {
			return nil, err
		}
		h.Write(variables)
	}
	return h.Sum(nil), nil
}

func tsigTimers(t *dns.TSIG) []byte {
	b := binary.BigEndian.AppendUint64(nil, t.TimeSigned)[2:] // 48 bits
	return binary.BigEndian.AppendUint16(b, t.Fudge)
}

func tsigVariables(t *dns.TSIG) ([]byte, error) {
	var b []byte
	name := func(n string) error {
		buf := make([]byte, 256)
		off, err := dns.PackDomainName(dns.CanonicalName(n), buf, 0, nil, false)
		b = append(b, buf[:off]...)
		return err
	}
	if err := name(t.Hdr.Name); err != nil {
		return nil, fmt.Errorf("the reply's key name: %w", err)
	}
	b = binary.BigEndian.AppendUint16(b, dns.ClassANY)
	b = binary.BigEndian.AppendUint32(b, 0)
	if err := name(t.Algorithm); err != nil {
		return nil, fmt.Errorf("the reply's algorithm: %w", err)
	}
	other, err := hex.DecodeString(t.OtherData)
	if err != nil {
		return nil, fmt.Errorf("the reply's TSIG other data: %w", err)
	}
	b = append(b, tsigTimers(t)...)
	b = binary.BigEndian.AppendUint16(b, t.Error)
	b = binary.BigEndian.AppendUint16(b, t.OtherLen)
	return append(b, other...), nil
}

// tsigOffset is where the last resource record of a message begins.
func tsigOffset(raw []byte) (int, error) {
	l, err := layoutOf(raw)
	if err == nil && l.last == 0 {
		err = dns.ErrShortRead
	}
	return l.last, err
}

// skipName is the offset after the domain name at off (RFC 1035 section 4.1.4).
func skipName(raw []byte, off int) (int, error) {
	for off < len(raw) {
		switch l := int(raw[off]); {
		case l == 0:
			return off + 1, nil
		case l >= 0xC0:
			return off + 2, nil
		case l > 63:
			return 0, errors.New("bad label type")
		default:
			off += 1 + l
		}
	}
	return 0, dns.ErrShortRead
}
