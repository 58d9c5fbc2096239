package coredns

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Reasons of errors.
const (
	reasonUnreachable    = "Unreachable"
	reasonNoQuorum       = "NoQuorum"
	reasonCertificate    = "CertificateFailed"
	reasonAuthentication = "AuthenticationFailed"
	reasonPermission     = "PermissionDenied"
	reasonNoSpace        = "NoSpace"
	reasonTooLarge       = "TooLarge"
	reasonFailed         = "RequestFailed"
)

// probeTimeout is for finding out why there is no connection.
const probeTimeout = 3 * time.Second

// failures are the errors of etcd that a person can do something about; the first that fits counts.
var failures = []struct {
	errs      []error
	reason    string
	temporary bool
	remedy    string
}{
	{
		[]error{rpctypes.ErrNoSpace}, reasonNoSpace, false,
		"etcd has no space left for writing: compact and defragment it, then disarm its alarm (etcdctl compaction, defrag, alarm disarm), or raise --quota-backend-bytes",
	},
	{
		[]error{rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserNotFound}, reasonAuthentication, false,
		"check username and password in the Secret of spec.coreDNS.etcd.credentialsSecretRef",
	},
	{
		[]error{rpctypes.ErrPermissionDenied}, reasonPermission, false,
		"grant the user of spec.coreDNS.etcd.credentialsSecretRef reading and writing below the prefix (etcdctl role grant-permission --prefix)",
	},
	{
		[]error{
			rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
			rpctypes.ErrTimeoutWaitAppliedIndex, rpctypes.ErrUnhealthy,
		}, reasonNoQuorum, true,
		"too few members of etcd reach each other: bring the others back (etcdctl endpoint status --cluster)",
	},
}

// errAnswerTooLarge is an answer of which even the smallest page is too large.
var errAnswerTooLarge = fmt.Errorf("a single answer of etcd has more than %d MiB, or takes more than %d MiB when it is decoded", maxEncoded>>20, maxDecoded>>20)

// failureOf makes an error of the backend of one of the client.
func failureOf(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var large *outbound.TooLargeError
	switch {
	case errors.As(err, &large):
		return &host.Error{Reason: reasonTooLarge, Temporary: large.Shared, Err: large, Remedy: "give the zone a prefix of its own, or divide it"}
	case errors.Is(err, errNested):
		return &host.Error{Reason: reasonTooLarge, Err: errNested, Remedy: "see what is below the zone's key in etcd, and delete what is no record"}
	case isTooLarge(err):
		return &host.Error{Reason: reasonTooLarge, Err: errAnswerTooLarge, Remedy: "see what is below the zone's key in etcd, and delete what is no record"}
	case errors.Is(err, errDisordered), errors.Is(err, errNoNotice):
		return &host.Error{Reason: reasonUnreachable, Temporary: true, Err: err, Remedy: "check spec.coreDNS.etcd.endpoints: what answers there is not etcd, or broken"}
	case errors.Is(err, errTooSlow):
		return &host.Error{Reason: reasonUnreachable, Temporary: true, Err: fmt.Errorf("%w: %s", errTooSlow, readTimeout), Remedy: "see why etcd is slow, or divide the zone"}
	}
	known := rpctypes.Error(err)
	for _, f := range failures {
		for _, e := range f.errs {
			if errors.Is(known, e) {
				return &host.Error{Reason: f.reason, Remedy: f.remedy, Temporary: f.temporary, Err: known}
			}
		}
	}
	text := messageOf(err)
	switch {
	case strings.Contains(text, "unexpected HTTP status") || strings.Contains(text, "unexpected content-type") || strings.Contains(text, "http2:"):
		// What another kind of server answers is not for those who name it.
		return &host.Error{
			Reason: reasonUnreachable, Temporary: true, Err: errors.New("what answers there is not etcd"),
			Remedy: "check spec.coreDNS.etcd.endpoints",
		}
	case strings.Contains(text, "x509: ") || strings.Contains(text, "tls: "):
		// Names in a certificate are not for those who name the endpoint, either.
		return &host.Error{
			Reason: reasonCertificate, Err: errors.New("TLS fails: its certificate is not valid for that host name by the authority in ca.crt, it does not accept ours, or it is not etcd"),
			Remedy: "check the certificates in the Secret of spec.coreDNS.etcd.tlsSecretRef (ca.crt, tls.crt, tls.key), and that the certificate of etcd is for the host names in spec.coreDNS.etcd.endpoints",
		}
	case errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded:
		return &host.Error{
			Reason: reasonUnreachable, Temporary: true, Err: errors.New(text),
			Remedy: "check spec.coreDNS.etcd.endpoints, and that etcd runs and can be reached from here",
		}
	}
	if _, itsOwn := known.(rpctypes.EtcdError); !itsOwn { //nolint:errorlint // rpctypes.Error returns it unwrapped
		text = "it answered with an error that etcd does not have (" + status.Code(err).String() + ")"
	}
	return &host.Error{Reason: reasonFailed, Temporary: true, Err: errors.New(text)}
}

// explain makes an error of the backend of one of the client, which may be nil. The client does not say why it has no connection, so that
// is found out. When the member of etcd that it is connected to is cut off, the next call goes to another one.
func (b *Backend) explain(ctx context.Context, client *clientv3.Client, err error) error {
	if err != nil && b.isClosed() {
		return errClosed
	}
	failed := failureOf(err)
	var failure *host.Error
	if !errors.As(failed, &failure) || failure.Reason != reasonUnreachable && failure.Reason != reasonNoQuorum {
		return failed
	}
	b.discardClient(client)
	if failure.Reason != reasonUnreachable || errors.Is(err, errDisordered) || errors.Is(err, errTooSlow) {
		return failed
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, endpoint := range b.options.Endpoints {
		if err := b.probe(ctx, endpoint); err != nil && !errors.Is(err, outbound.ErrOwnLimit) { // That says less than the failure.
			return failureOf(status.Error(codes.Unavailable, err.Error()))
		}
	}
	return failed
}

// probe connects to an endpoint as the client does, and waits for the first byte, before which a server refuses a certificate.
func (b *Backend) probe(ctx context.Context, endpoint string) error {
	where, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	conn, err := b.dial(ctx, where.Host)
	if err != nil || where.Scheme != "https" {
		return err
	}
	defer conn.Close()
	config := b.options.TLS.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName = where.Hostname()
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	_ = secure.SetReadDeadline(deadline)
	_, err = secure.Read(make([]byte, 1))
	return err
}

// maxMessage is how much is repeated of what etcd says.
const maxMessage = 400

// messageOf says what happened without the wrapping of gRPC.
func messageOf(err error) string {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "etcdserver: "), `\"`, `"`)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " …"
	}
	return text
}
