package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/tlsfiles"
)

// Options configure the sidecar's server.
type Options struct {
	// Listen are the addresses to serve on.
	Listen []string
	// TLSCertFile and TLSKeyFile are the serving certificate and its key, ClientCAFile has the authorities that verify the
	// certificates of callers, all PEM, reloaded when they change.
	TLSCertFile, TLSKeyFile, ClientCAFile string
	// HealthAddress serves the kubelet's probes and nothing else, as plain HTTP.
	HealthAddress string
	// RNDCAddress and RNDCKeyFile lead to named's control channel, StatisticsURL to its statistics channel.
	RNDCAddress, RNDCKeyFile, StatisticsURL string
	// NoticeAddress, on loopback, is where named sends NOTIFY, over UDP and TCP.
	NoticeAddress string
	// ZonesDir is where zone files are, under the same path as for named.
	ZonesDir string
	// KeyNamesDir has the names of the TSIG keys: layout.KeyNames in a directory for each role.
	KeyNamesDir string
	// DNSPort is where named answers DNS, on the addresses of this pod.
	DNSPort int
	// RequestRate is how many requests per second are served.
	RequestRate int
	// LogLevel is error, warn, info, debug or trace; empty to log as -v says.
	LogLevel string
}

// NewOptions returns the defaults inside a pod.
func NewOptions() *Options {
	return &Options{
		Listen:        []string{fmt.Sprintf(":%d", layout.SidecarPort)},
		TLSCertFile:   layout.CertificateDir + "/tls.crt",
		TLSKeyFile:    layout.CertificateDir + "/tls.key",
		ClientCAFile:  layout.CertificateDir + "/ca.crt",
		HealthAddress: fmt.Sprintf(":%d", layout.HealthPort),
		RNDCAddress:   fmt.Sprintf("127.0.0.1:%d", layout.ControlPort),
		RNDCKeyFile:   layout.ControlKeyFile,
		StatisticsURL: fmt.Sprintf("http://127.0.0.1:%d", layout.StatisticsPort),
		NoticeAddress: fmt.Sprintf("127.0.0.1:%d", layout.NoticePort),
		ZonesDir:      layout.ZonesDir,
		KeyNamesDir:   layout.KeyNamesDir,
		DNSPort:       layout.DNSPort,
		RequestRate:   2000,
	}
}

// AddFlags registers the options' flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Listen, "listen", o.Listen, "Addresses to serve on.")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "Serving certificate, PEM.")
	fs.StringVar(&o.TLSKeyFile, "tls-private-key-file", o.TLSKeyFile, "Key of the serving certificate, PEM.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "Authorities that verify the certificates of callers, PEM.")
	fs.StringVar(&o.HealthAddress, "health-address", o.HealthAddress, "Address of the kubelet's probes, plain HTTP.")
	fs.StringVar(&o.RNDCAddress, "rndc-address", o.RNDCAddress, "Address of named's control channel.")
	fs.StringVar(&o.RNDCKeyFile, "rndc-key-file", o.RNDCKeyFile, "File with the key of named's control channel.")
	fs.StringVar(&o.StatisticsURL, "statistics-url", o.StatisticsURL, "Base URL of named's statistics channel.")
	fs.StringVar(&o.NoticeAddress, "notice-address", o.NoticeAddress, "Address on loopback where named's NOTIFY is awaited.")
	fs.StringVar(&o.ZonesDir, "zones-dir", o.ZonesDir, "Directory of zone files, shared with named.")
	fs.StringVar(&o.KeyNamesDir, "key-names-dir", o.KeyNamesDir, "Directory with the names of the TSIG keys.")
	fs.IntVar(&o.DNSPort, "dns-port", o.DNSPort, "Port of named for DNS.")
	fs.IntVar(&o.RequestRate, "request-rate", o.RequestRate, "Requests per second that are served; more are answered 429.")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "One of error, warn, info, debug, trace, instead of -v: what logLevel of an instance sets.")
}

// verbosity maps a log level to klog's.
var verbosity = map[string]string{"error": "0", "warn": "0", "warning": "0", "info": "0", "debug": "4", "trace": "6"}

// Validate joins all invalid flags by name.
func (o *Options) Validate() error {
	var problems component.Problems
	problems.Check(len(o.Listen) > 0, "--listen: at least one address is needed")
	for _, address := range append([]string{o.RNDCAddress, o.HealthAddress}, o.Listen...) {
		_, _, err := net.SplitHostPort(address)
		problems.Check(err == nil, "--listen, --rndc-address, --health-address: %q is not host:port", address)
	}
	problems.Check(o.TLSCertFile != "", "--tls-cert-file: must be set")
	problems.Check(o.TLSKeyFile != "", "--tls-private-key-file: must be set")
	problems.Check(o.ClientCAFile != "", "--client-ca-file: must be set")
	base, err := url.Parse(o.StatisticsURL)
	problems.Check(err == nil && base.Scheme == "http", "--statistics-url: %q is not an http URL", o.StatisticsURL)
	notices, err := netip.ParseAddrPort(o.NoticeAddress)
	problems.Check(err == nil && notices.Addr().IsLoopback() && notices.Port() != 0, "--notice-address: %q is not an address and port on loopback", o.NoticeAddress)
	problems.Check(o.RNDCKeyFile != "", "--rndc-key-file: must be set")
	problems.Check(o.ZonesDir != "", "--zones-dir: must be set")
	problems.Check(o.KeyNamesDir != "", "--key-names-dir: must be set")
	problems.Check(o.RequestRate > 0, "--request-rate: must be positive")
	_, known := verbosity[strings.ToLower(o.LogLevel)]
	problems.Check(known || o.LogLevel == "", "--log-level: %q is not one of error, warn, info, debug, trace", o.LogLevel)
	return errors.Join(problems...)
}

// tlsConfig requires a certificate of every caller.
func (o *Options) tlsConfig() (*tls.Config, error) {
	files := tlsfiles.Files{Certificate: o.TLSCertFile, Key: o.TLSKeyFile, ClientCA: o.ClientCAFile}
	config, err := files.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file, --client-ca-file: %w", err)
	}
	return config, nil
}

// Run serves until ctx ends; requests under way then have ten seconds to finish.
func (o *Options) Run(ctx context.Context) error {
	if level, ok := verbosity[strings.ToLower(o.LogLevel)]; ok {
		if _, err := logs.GlogSetter(level); err != nil {
			return fmt.Errorf("--log-level: %w", err)
		}
	}
	s, err := newServer(*o)
	if err != nil {
		return err
	}
	defer s.close()
	group, ctx := errgroup.WithContext(ctx)
	// A server that shuts down waits for its streams.
	defer context.AfterFunc(ctx, s.closeStreams)()
	tlsConfig, err := o.tlsConfig()
	if err != nil {
		return err
	}
	listener, err := s.listenForNotify(ctx)
	if err != nil {
		return fmt.Errorf("--notice-address: %w", err)
	}
	group.Go(func() error { return listener.Serve(ctx) })
	group.Go(func() error { s.runReconciler(ctx); return nil })
	group.Go(func() error { s.watchZones(ctx); return nil })
	group.Go(func() error { s.signingKeys.Run(ctx); return nil })
	health, err := new(net.ListenConfig).Listen(ctx, "tcp", o.HealthAddress)
	if err != nil {
		return fmt.Errorf("--health-address: %w", err)
	}
	group.Go(func() error { return serveHTTP(ctx, health, newHealthServer(ctx, s.healthHandler())) })
	for _, address := range o.Listen {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		secured := newHandshakeListener(listener, tlsConfig) //nolint:contextcheck // It lives until it is closed.
		group.Go(func() error { return serveHTTP(ctx, secured, newHTTPServer(ctx, s.rootHandler())) })
	}
	klog.FromContext(ctx).Info("serving", "addresses", o.Listen, "zonesDir", o.ZonesDir)
	return group.Wait()
}
