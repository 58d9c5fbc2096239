package bindcar

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

// Address is a sidecar as its callers know it.
type Address struct {
	// Addr is where it listens.
	Addr netip.AddrPort
	// Namespace and Instance are the Bind9Instance whose pod it is in: its certificate is that instance's.
	Namespace, Instance string
}

// certificateDomain ends the names in sidecars' certificates. Nobody resolves them: .internal is in no public DNS. They are
// not names of Services, so that no instance can get a certificate for a name of another server in the cluster.
const certificateDomain = "bindcar.internal"

// CertificateName is the DNS name in the certificate of an instance's sidecars.
func CertificateName(namespace, instance string) string {
	return "*." + instance + "." + namespace + "." + certificateDomain
}

// hostname is the sidecar's name in a URL: its address as a label below the name of its instance. So connections to two pods are never
// mixed up, and the server must prove that it belongs to the intended instance.
func (s Address) hostname() string {
	label := hex.EncodeToString(s.Addr.Addr().Unmap().AsSlice())
	return label + strings.TrimPrefix(CertificateName(s.Namespace, s.Instance), "*")
}

// parseHostname reads the address in a name that hostname made.
func parseHostname(host string) (netip.Addr, error) {
	label, _, _ := strings.Cut(host, ".")
	raw, err := hex.DecodeString(label)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not a sidecar's name: %w", host, err)
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.Addr{}, fmt.Errorf("%q is not a sidecar's name", host)
	}
	return addr, nil
}

// handshakeTimeout is how long preparing a connection may take, and its handshake again.
const handshakeTimeout = 3 * time.Second

// accountKey is the key, in the context of a request, of the account that its connection is charged to.
type accountKey struct{}

// dial connects to an address for the account of the request. It waits no longer than a request does: the context is no longer that of a
// request that got another's connection meanwhile.
func (o ClientOptions) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errNoConnection)
	defer cancel()
	account, _ := ctx.Value(accountKey{}).(*outbound.Account)
	return account.Dial(ctx, network, address)
}

var errNoConnection = errors.New("no connection in time")

// dialTLS connects to a name that hostname made and verifies the certificate with the authorities of this moment.
func (o ClientOptions) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addr, err := parseHostname(host)
	if err != nil {
		return nil, err
	}
	waiting, stop := context.WithTimeout(ctx, handshakeTimeout)
	defer stop()
	config, err := o.TLS(waiting)
	if err != nil {
		return nil, fmt.Errorf("preparing a certificate for Bindcar API: %w", err)
	}
	conn, err := o.dial(ctx, network, net.JoinHostPort(addr.String(), port))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	config.ServerName = host
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}
