package rig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// Bare is a primary and two secondaries that run on this machine without Kubernetes, with the configuration of a pod: what
// BIND itself needs for something. Its first server is the primary.
type Bare struct {
	dir     string
	servers []*bareServer
	// key is for transfers, update for updates.
	key, update *wire.Key
}

type bareServer struct {
	layout  named.Layout
	control *rndc.Client
	process *exec.Cmd
}

// StartBare starts the three servers on loopback, on ports that are free.
func StartBare(ctx context.Context) (*Bare, error) {
	dir, err := os.MkdirTemp("", "lockstep-bench-")
	if err != nil {
		return nil, err
	}
	b := &Bare{dir: dir}
	if b.key, err = named.NewKey("bench", "bare", named.KeyTransfer); err != nil {
		return nil, err
	}
	if b.update, err = named.NewKey("bench", "bare", named.KeyUpdate); err != nil {
		return nil, err
	}
	for _, role := range []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary, v1beta1.RoleSecondary} {
		if err := b.startServer(ctx, role); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// Close ends the servers and removes their files.
func (b *Bare) Close() {
	for _, s := range b.servers {
		_ = s.control.Close()
		_ = s.process.Process.Signal(syscall.SIGTERM)
		_ = s.process.Wait()
	}
	_ = os.RemoveAll(b.dir)
}

// Addresses returns where the three answer.
func (b *Bare) Addresses() []netip.AddrPort {
	var all []netip.AddrPort
	for _, s := range b.servers {
		all = append(all, loopbackAddress(s.layout.Port))
	}
	return all
}

func loopbackAddress(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
}

func (b *Bare) startServer(ctx context.Context, role v1beta1.ServerRole) error {
	layout, err := b.newLayout()
	if err != nil {
		return err
	}
	controlKey, err := rndc.NewKey("")
	if err != nil {
		return err
	}
	config := named.Config{Layout: layout, Role: role}
	config.Options.ListenOn, config.Options.ListenOnV6 = []string{"127.0.0.1"}, []string{"none"}
	files, err := named.Render(config)
	if err != nil {
		return err
	}
	errs := []error{writeFile(layout.ControlKeyFile, controlKey.Clause())}
	for role, key := range map[named.KeyRole]*wire.Key{named.KeyTransfer: b.key, named.KeyUpdate: b.update} {
		ring, err := named.NewKeyring(role, key, time.Now())
		if err != nil {
			return err
		}
		errs = append(errs, writeFile(filepath.Join(layout.KeyDir, string(role), named.KeyClauseEntry), ring.Clauses(role)))
	}
	for name, text := range files {
		errs = append(errs, writeFile(filepath.Join(layout.ConfigDir, name), text))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.runNamed(ctx, layout, controlKey)
}

func (b *Bare) newLayout() (named.Layout, error) {
	dir := filepath.Join(b.dir, fmt.Sprint(len(b.servers)))
	ports, err := namedtest.FreePorts(3)
	if err != nil {
		return named.Layout{}, err
	}
	return named.Layout{
		ConfigDir: dir + "/etc", KeyDir: dir + "/etc/keys", CacheDir: dir + "/cache", ZonesDir: dir + "/cache/zones",
		RunDir: dir + "/run", ControlKeyFile: dir + "/run/rndc.key", Port: ports[0], ControlPort: ports[1], StatisticsPort: ports[2],
	}, os.MkdirAll(dir+"/cache/zones", 0o700)
}

func (b *Bare) runNamed(ctx context.Context, layout named.Layout, key rndc.Key) error {
	if err := os.MkdirAll(layout.RunDir, 0o700); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(b.dir, fmt.Sprintf("log-%d", len(b.servers))))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("named", "-f", "-4", "-c", filepath.Join(layout.ConfigDir, named.MainFile))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	s := &bareServer{layout: layout, process: cmd, control: rndc.NewClient(loopbackAddress(layout.ControlPort).String(), key)}
	b.servers = append(b.servers, s)
	err = PollUntil(ctx, 10*time.Second, 25*time.Millisecond, func() error {
		_, err := s.control.Command(ctx, "status")
		return err
	})
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("named on loopback: %w\n%s", err, text)
	}
	return nil
}

// AddZones adds zones of one A RR each, www, over one control connection to each server that is kept open. Secondaries
// get a zone as soon as the primary has it.
func (b *Bare) AddZones(ctx context.Context, zones []string, address string) error {
	group, ctx := errgroup.WithContext(ctx)
	var ready []chan string
	for _, s := range b.servers[1:] {
		zones := make(chan string, len(zones))
		ready = append(ready, zones)
		group.Go(func() error { return b.addSecondaries(ctx, s, zones) })
	}
	group.Go(func() error {
		defer func() {
			for _, c := range ready {
				close(c)
			}
		}()
		for _, zone := range zones {
			if err := b.addPrimary(ctx, zone, address); err != nil {
				return err
			}
			for _, c := range ready {
				c <- zone
			}
		}
		return nil
	})
	return group.Wait()
}

func (b *Bare) addPrimary(ctx context.Context, zone, address string) error {
	s := b.servers[0]
	file := filepath.Join(s.layout.ZonesDir, zone+".zone")
	text := fmt.Sprintf("$TTL 3600\n@ SOA ns1 hostmaster 1 3600 600 604800 86400\n@ NS ns1\nns1 A 192.0.2.53\nwww A %s\n", address)
	if err := writeFile(file, text); err != nil {
		return err
	}
	notify := ""
	for _, other := range b.servers[1:] {
		notify += fmt.Sprintf("127.0.0.1 port %d key %q; ", other.layout.Port, b.key.Name)
	}
	_, err := s.control.Command(ctx, fmt.Sprintf(`addzone %q { type primary; file %q; also-notify { %s}; };`, zone, file, notify))
	return err
}

// AddUpdatable adds an empty zone to the primary alone, and returns the key that may update and transfer it.
func (b *Bare) AddUpdatable(ctx context.Context, zone string) (*wire.Key, error) {
	s := b.servers[0]
	file := filepath.Join(s.layout.ZonesDir, zone+".zone")
	if err := writeFile(file, "$TTL 3600\n@ SOA ns1 hostmaster 1 3600 600 604800 86400\n@ NS ns1\nns1 A 192.0.2.53\n"); err != nil {
		return nil, err
	}
	key := fmt.Sprintf("{ key %q; }", b.update.Name)
	_, err := s.control.Command(ctx, fmt.Sprintf(`addzone %q { type primary; file %q; allow-update %s; allow-transfer %s; notify no; };`, zone, file, key, key))
	return b.update, err
}

func (b *Bare) addSecondaries(ctx context.Context, s *bareServer, zones <-chan string) error {
	primary := fmt.Sprintf("127.0.0.1 port %d key %q; ", b.servers[0].layout.Port, b.key.Name)
	for zone := range zones {
		file := filepath.Join(s.layout.ZonesDir, zone+".zone")
		if _, err := s.control.Command(ctx, fmt.Sprintf(`addzone %q { type secondary; file %q; primaries { %s}; };`, zone, file, primary)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// writeFile makes the file's folder too.
func writeFile(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
