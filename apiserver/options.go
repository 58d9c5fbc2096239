package apiserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/refresh"
	"github.com/lockstep-dns/lockstep/apiserver/registry"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
)

// Options are the flags of the aggregated API server.
type Options struct {
	ServerRun      *genericoptions.ServerRunOptions
	SecureServing  *genericoptions.SecureServingOptionsWithLoopback
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	Audit          *genericoptions.AuditOptions
	Features       *genericoptions.FeatureOptions
	CoreAPI        *genericoptions.CoreAPIOptions

	// Verdicts says how DNS servers are asked.
	Verdicts registry.Options
	// Networks are where nothing may be that objects of tenants name.
	Networks outbound.Networks
	// Namespace is the one that Lockstep runs in: it has the Secrets with the certificates.
	Namespace string
	// Vantages are those that ask from elsewhere, each as NAME=https://HOST:PORT. VantageCAFile has authorities that verify their
	// certificates, besides Lockstep's own.
	Vantages      []string
	VantageCAFile string
	// TrustAnchorFile has DS and DNSKEY records by which signed zones are validated.
	TrustAnchorFile string
}

// vantageTimeout is how long a vantage may take: one question, and one for the name of the server.
const vantageTimeout = 5 * time.Second

// vantages are clients of the vantages.
func (o *Options) vantages(config func(context.Context) (*tls.Config, error)) (all []ask.Vantage, err error) {
	var authorities []byte
	if o.VantageCAFile != "" {
		if authorities, err = os.ReadFile(o.VantageCAFile); err != nil {
			return nil, fmt.Errorf("--vantage-ca-file: %w", err)
		}
	}
	for _, v := range o.Vantages {
		name, at, err := parseVantage(v)
		if err != nil {
			return nil, err
		}
		all = append(all, vantage.NewClient(name, at, config, authorities, vantageTimeout))
	}
	return all, nil
}

func parseVantage(text string) (name string, at *url.URL, err error) {
	name, address, _ := strings.Cut(text, "=")
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", nil, fmt.Errorf("--vantage=%q: the name %q: %s", text, name, problems[0])
	}
	at, err = url.Parse(address)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.Port() == "" {
		return "", nil, fmt.Errorf("--vantage=%q: must be NAME=https://HOST:PORT", text)
	}
	return name, at, nil
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	o := &Options{
		ServerRun:      genericoptions.NewServerRunOptions(),
		SecureServing:  genericoptions.NewSecureServingOptions().WithLoopback(),
		Authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:          genericoptions.NewAuditOptions(),
		Features:       genericoptions.NewFeatureOptions(),
		CoreAPI:        genericoptions.NewCoreAPIOptions(),
		Verdicts: registry.Options{MaxAge: time.Second, Options: refresh.Options{
			Options: ask.Options{
				Deadline: 2 * time.Second, VerifyInterval: 5 * time.Minute, QuestionRate: 2000, Limits: observe.DefaultLimits(),
			},
			WatchInterval: 500 * time.Millisecond, SignatureNotice: 72 * time.Hour,
		}},
		Namespace: cmp.Or(os.Getenv("POD_NAMESPACE"), "lockstep-system"),
	}
	o.SecureServing.BindPort = 8443
	o.SecureServing.HTTP2MaxStreamsPerConnection = 1000
	// Certificates come from Secrets or files of others; nothing is written to disk.
	o.SecureServing.ServerCert.CertDirectory, o.SecureServing.ServerCert.PairName = "", ""
	// kube-apiserver has sorted every request already: docs/decisions/2026-11-21-priority-and-fairness.md.
	o.Features.EnablePriorityAndFairness = false
	// Time for Services to forget this replica, and then for its clients to move on: see gracefulShutdown.
	o.ServerRun.ShutdownDelayDuration = 10 * time.Second
	o.ServerRun.ShutdownWatchTerminationGracePeriod = 2 * time.Second
	return o
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace that Lockstep runs in; holds the Secrets of its certificates")
	fs.DurationVar(&o.Verdicts.MaxAge, "max-age", o.Verdicts.MaxAge, "how old a DNS server's answer may be when a list uses it; a request for a single object always queries the servers")
	fs.IntVar(&o.Verdicts.QuestionRate, "max-queries-per-second", o.Verdicts.QuestionRate, "how many queries in a second a DNS server that is read by query gets at most; namespaces take turns")
	fs.DurationVar(&o.Verdicts.Deadline, "deadline", o.Verdicts.Deadline, "how long to wait for a DNS server that does not answer; the answer then says so")
	fs.DurationVar(&o.Verdicts.WatchInterval, "watch-interval", o.Verdicts.WatchInterval, "how often to query the serial of a watched zone from its DNS servers; a server that sends notifications is queried for few of its zones each time")
	fs.DurationVar(&o.Verdicts.VerifyInterval, "verify-interval", o.Verdicts.VerifyInterval, "how often to transfer a zone completely although its serial has not changed; 0 for never")
	fs.StringArrayVar(&o.Vantages, "vantage", o.Vantages, "a vantage that is asked what clients get where it runs, as NAME=https://HOST:PORT; may be repeated")
	fs.StringVar(&o.VantageCAFile, "vantage-ca-file", o.VantageCAFile, "file with authorities that verify the certificates of vantages, besides Lockstep's own")
	fs.StringVar(&o.TrustAnchorFile, "trust-anchor-file", o.TrustAnchorFile, "file with DS or DNSKEY records, as lines of a zone file, that vouch for the keys of signed zones; it is read again when it changes")
	fs.DurationVar(&o.Verdicts.SignatureNotice, "signature-notice", o.Verdicts.SignatureNotice, "how long before a DNSSEC signature expires it is reported as Expiring")
	o.Verdicts.Limits.AddFlags(fs)
	o.Networks.AddFlag(fs)
	o.ServerRun.AddUniversalFlags(fs)
	o.SecureServing.AddFlags(fs)
	o.Authentication.AddFlags(fs)
	o.Authorization.AddFlags(fs)
	o.Audit.AddFlags(fs)
	o.Features.AddFlags(fs)
	o.CoreAPI.AddFlags(fs)
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	errs := component.Problems{o.Verdicts.Limits.Validate()}
	errs.AddAll("--namespace", o.Namespace, validation.IsDNS1123Label(o.Namespace))
	for _, f := range []struct {
		flag            string
		value, min, max time.Duration
	}{
		{"--max-age", o.Verdicts.MaxAge, 0, time.Minute},
		{"--deadline", o.Verdicts.Deadline, 50 * time.Millisecond, 30 * time.Second}, // requests end after a minute
		{"--watch-interval", o.Verdicts.WatchInterval, 50 * time.Millisecond, time.Minute},
		{"--verify-interval", o.Verdicts.VerifyInterval, 0, 24 * time.Hour},
		{"--signature-notice", o.Verdicts.SignatureNotice, 0, 365 * 24 * time.Hour},
	} {
		errs.Check(f.value >= f.min && f.value <= f.max, "%s=%s: must be from %s to %s", f.flag, f.value, f.min, f.max)
	}
	names := map[string]bool{}
	for _, v := range o.Vantages {
		name, _, err := parseVantage(v)
		if err == nil && names[name] {
			err = fmt.Errorf("--vantage=%q: there are two of that name", v)
		}
		names[name], errs = true, append(errs, err)
	}
	rate, verify := o.Verdicts.QuestionRate, o.Verdicts.VerifyInterval
	errs.Check(rate >= 1, "--max-queries-per-second=%d: must be at least 1", rate)
	errs.Check(verify <= 0 || verify >= time.Second, "--verify-interval=%s: must be 0 or at least 1s", verify)
	for _, group := range [][]error{
		o.ServerRun.Validate(), o.SecureServing.Validate(), o.Authentication.Validate(), o.Authorization.Validate(),
		o.Audit.Validate(), o.Features.Validate(), o.CoreAPI.Validate(),
	} {
		errs = append(errs, group...)
	}
	return errors.Join(errs...)
}

// Run serves until the context ends, then lets requests in flight finish.
func (o *Options) Run(ctx context.Context) error {
	kubernetes, err := clientcmd.BuildConfigFromFlags("", o.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return fmt.Errorf("finding kube-apiserver: %w", err)
	}
	kubernetes.DisableCompression = true
	if err := cachehealth.WaitForServer(ctx, kubernetes); err != nil {
		return err
	}
	config, err := o.Config()
	if err != nil {
		return err
	}
	server, err := config.Complete().New() //nolint:contextcheck // servers are asked in the name of all readers, under a context of the API server
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
