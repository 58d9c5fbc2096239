package vantage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/tlsfiles"
)

// Options are the flags of a vantage.
type Options struct {
	// Address is where the API server connects, ProbeAddress serves /healthz; empty for none.
	Address, ProbeAddress string
	// CertFile and KeyFile are the certificate that the API server verifies, ClientCAFile the authorities that verify the API server's. They are
	// read anew for each connection.
	CertFile, KeyFile, ClientCAFile string
	// Ports are those that may be asked at.
	Ports []int
	// QuestionRate is how many questions are asked in a second, at most, and Deadline how long each may take.
	QuestionRate int
	Deadline     time.Duration

	// Networks are those that nothing is asked in.
	Networks outbound.Networks

	caller string
}

// NewOptions returns the defaults. caller is the identity in the certificate of whoever is answered.
func NewOptions(caller string) *Options {
	return &Options{
		Address: ":8453", ProbeAddress: ":8080", Ports: []int{53}, QuestionRate: 200, Deadline: 2 * time.Second,
		caller: caller,
	}
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Address, "bind-address", o.Address, "address for the API server, with TLS and client certificates")
	fs.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, "address of /healthz, without TLS; empty for none")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "file with the certificate that the API server verifies; it is read anew when it changes")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "file with the key of that certificate")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "file with the authorities that verify the API server's certificate: ca.crt of the Secret lockstep-apiserver-client")
	fs.IntSliceVar(&o.Ports, "ports", o.Ports, "ports at which name servers may be asked")
	fs.IntVar(&o.QuestionRate, "max-queries-per-second", o.QuestionRate, "how many questions are asked in a second at most, whoever wants to know")
	o.Networks.AddFlag(fs)
	fs.DurationVar(&o.Deadline, "deadline", o.Deadline, "how long a name server may take to answer")
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var errs []error
	for _, port := range o.Ports {
		if port < 1 || port > 65535 {
			errs = append(errs, fmt.Errorf("--ports: %d is no port", port))
		}
	}
	if o.QuestionRate < 1 {
		errs = append(errs, fmt.Errorf("--max-queries-per-second=%d: must be at least 1", o.QuestionRate))
	}
	if o.Deadline < 50*time.Millisecond || o.Deadline > 4*time.Second {
		errs = append(errs, fmt.Errorf("--deadline=%s: must be from 50ms to 4s", o.Deadline))
	}
	return errors.Join(errs...)
}

// Run serves until the context ends.
func (o *Options) Run(ctx context.Context) error {
	config, err := o.tlsConfig()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	const handshake = 2 * time.Second
	server := &http.Server{
		Handler: newServer(o, outbound.NewGate(nil, outbound.Limits{Connections: maxConnections, Networks: o.Networks})), ReadHeaderTimeout: handshake, ReadTimeout: 5 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 8 << 10,
	}
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(tls.NewListener(netutil.LimitListener(listener, 256), config)) }()
	probes := &http.Server{Addr: o.ProbeAddress, Handler: probeHandler(), ReadHeaderTimeout: handshake}
	if o.ProbeAddress != "" {
		go func() { failed <- probes.ListenAndServe() }()
	}
	defer server.Close()
	defer probes.Close()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func probeHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	return mux
}

// tlsConfig requires a certificate: strangers do not get past the handshake.
func (o *Options) tlsConfig() (*tls.Config, error) {
	files := tlsfiles.Files{Certificate: o.CertFile, Key: o.KeyFile, ClientCA: o.ClientCAFile}
	config, err := files.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file, --client-ca-file: nobody is answered without a certificate: %w", err)
	}
	return config, nil
}
