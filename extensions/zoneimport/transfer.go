package zoneimport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// transferTime bounds the transfer as a whole.
const transferTime = 10 * time.Minute

// readTransfer asks for the whole zone (AXFR, RFC 5936), each server of its origin until one transfers it.
func (r *contentReader) readTransfer(ctx context.Context, origin zoneOrigin) error {
	limits := r.limits
	limits.Time = transferTime
	var errs []error
	for _, server := range origin.servers {
		addresses, err := resolveServer(ctx, server)
		if err != nil {
			errs = append(errs, err)
		}
		for _, address := range addresses {
			result, err := wire.Transfer(ctx, address, r.name, nil, origin.key, wire.WithLimits(limits))
			if err == nil {
				return r.addTransfer(server, result)
			}
			errs = append(errs, origin.describeError(err, r.name))
		}
	}
	return errors.Join(errs...)
}

// addTransfer adds the content that a server has transferred.
func (r *contentReader) addTransfer(server string, result wire.TransferResult) error {
	place := recordPlace{source: "transfer from " + server}
	if err := r.addSOA(result.SOA, place); err != nil {
		return err
	}
	for _, record := range result.Records {
		if err := r.addRecord(record.Key, record.TTL, record.Rdata, place); err != nil {
			return err
		}
	}
	return nil
}

// resolveServer reads ADDRESS[:PORT], where the address may be a host name.
func resolveServer(ctx context.Context, server string) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(server); err == nil {
		return []netip.AddrPort{a}, nil
	}
	if a, err := netip.ParseAddr(strings.Trim(server, "[]")); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(a, 53)}, nil
	}
	host, port := server, uint16(53)
	if h, p, err := net.SplitHostPort(server); err == nil {
		number, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("--server=%s: %q is no port", server, p)
		}
		host, port = h, uint16(number)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("--server=%s: %w", server, err)
	}
	var all []netip.AddrPort
	for _, a := range found {
		all = append(all, netip.AddrPortFrom(a.Unmap(), port))
	}
	return all, nil
}

// describeError adds what to do to what a server said.
func (o zoneOrigin) describeError(err error, zone string) error {
	key := o.key
	var failure *wire.Error
	if !errors.As(err, &failure) {
		return err
	}
	remedy := ""
	switch {
	case failure.TSIGError == dns.RcodeBadKey:
		remedy = fmt.Sprintf("give %s one of the keys in the server's named.conf; %q is none, or has another algorithm there", o.keyPlace, key.Name)
	case failure.TSIGError == dns.RcodeBadSig:
		remedy = fmt.Sprintf("compare the secret of the key %q with the one in the server's named.conf", key.Name)
	case failure.TSIGError == dns.RcodeBadTime, errors.Is(err, wire.ErrClock):
		remedy = "set the clocks"
	case failure.Rcode == dns.RcodeRefused && key == nil:
		remedy = `the server does not let everybody transfer the zone: allow a key there (allow-transfer { key "import"; };) and name it with --key-file, or allow this host's address`
	case failure.Rcode == dns.RcodeRefused:
		remedy = fmt.Sprintf("the server knows the key, and does not let it transfer the zone: allow-transfer { key %q; };", key.Name)
	case failure.Rcode == dns.RcodeNotAuth, failure.Rcode == dns.RcodeNameError:
		remedy = fmt.Sprintf("is %s the name of the zone, and does this server serve it (a view may keep it from this host)?", zone)
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, remedy)
}

// Parts of a key clause of named.conf, and its comments.
var (
	quotedOrComment = regexp.MustCompile(`"[^"\n]*"|/\*(?s:.*?)\*/|(?://|#)[^\n]*`)
	keyClause       = regexp.MustCompile(`(?s)\bkey\s+"?([^"\s{};]+)"?\s*\{(.*?)\}`)
	keyAlgorithm    = regexp.MustCompile(`\balgorithm\s+"?([A-Za-z0-9.-]+)"?\s*;`)
	keySecret       = regexp.MustCompile(`\bsecret\s+"?([A-Za-z0-9+/=]+)"?\s*;`)
)

// readKeyFile reads a file with one key clause as tsig-keygen(8) writes it and nsupdate -k reads it. No error holds the secret.
func readKeyFile(name string) (*wire.Key, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	clauses := keyClause.FindAllSubmatch(removeComments(text), -1)
	if len(clauses) != 1 {
		return nil, fmt.Errorf(`--key-file=%s: there are %d key clauses; it takes one, as tsig-keygen(8) writes it: key "NAME" { algorithm hmac-sha256; secret "…"; };`, name, len(clauses))
	}
	algorithm, secret := keyAlgorithm.FindSubmatch(clauses[0][2]), keySecret.FindSubmatch(clauses[0][2])
	if algorithm == nil || secret == nil {
		return nil, fmt.Errorf("--key-file=%s: the key %q lacks an algorithm or a secret in base64", name, clauses[0][1])
	}
	key := &wire.Key{Name: dns.CanonicalName(string(clauses[0][1])), Algorithm: dns.CanonicalName(string(algorithm[1])), Secret: string(secret[1])}
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("--key-file=%s: %w; tsig-keygen(8) makes a key that works", name, err)
	}
	return key, nil
}

// removeComments leaves what is in quotes alone: a secret may hold two slashes.
func removeComments(text []byte) []byte {
	return quotedOrComment.ReplaceAllFunc(text, func(part []byte) []byte {
		if part[0] == '"' {
			return part
		}
		return []byte(" ")
	})
}
