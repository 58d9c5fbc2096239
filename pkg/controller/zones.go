package controller

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/controller/zone"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Options are the flags of the controller, which programs zones.
type Options struct {
	Process
	ZoneTimeout time.Duration
	// Limits bound what DNS servers can make the controller take.
	Limits observe.Limits
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Process: newProcess("lockstep-controller"), ZoneTimeout: status.ZoneTimeout, Limits: observe.DefaultLimits()}
}

// AddFlags registers the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.addFlags(fs)
	fs.DurationVar(&o.ZoneTimeout, "zone-timeout", o.ZoneTimeout, "how long one of its instances may be without a zone before the zone says ProgressDeadlineExceeded")
	o.Limits.AddFlags(fs)
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	return errors.Join(
		o.Limits.Validate(),
		requireFlags(map[string]string{"--namespace": o.Namespace, "--bindcar-token-file": o.BindcarTokenFile}),
		requireTimeouts(map[string]time.Duration{"--zone-timeout": o.ZoneTimeout}),
	)
}

// Run programs zones until the context ends.
func (o *Options) Run(ctx context.Context) error {
	mgr, _, err := o.newManager(nil)
	if err != nil {
		return err
	}
	sidecar, _ := o.newSidecarClient(mgr)
	if err := zone.Setup(mgr, zone.Options{
		Home: o.Namespace, Timeout: o.ZoneTimeout, Keys: tsigkeys.NewCache(mgr.GetAPIReader()),
		Observer: observe.New(observe.Options{Limits: o.Limits}), Sidecar: sidecar,
	}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
