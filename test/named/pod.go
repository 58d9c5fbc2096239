package named

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	pkgnamed "github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// Pod is a server with the configuration that pkg/fleet/named renders, laid out in a temporary directory as it is in a pod, so
// that tests of the rndc client and the sidecar exercise what runs in production.
type Pod struct {
	*process
	Layout                 pkgnamed.Layout
	Control                rndc.Key
	UpdateKey, TransferKey *wire.Key
}

// StartPod runs a server in the given role until the test ends. Keys can be shared with another server of the test; a nil
// one is made. adjust may change the configuration before it is rendered.
func StartPod(t testing.TB, role v1beta1.ServerRole, keys [2]*wire.Key, adjust func(*pkgnamed.Config)) *Pod {
	t.Helper()
	dir := t.TempDir()
	p := &Pod{UpdateKey: keys[0], TransferKey: keys[1], Layout: layoutIn(t, dir)}
	p.writeKeys(t, role)
	config := pkgnamed.Config{Layout: p.Layout, Role: role}
	config.Options.ListenOn = []string{"127.0.0.1"}
	config.Options.ListenOnV6 = []string{"none"}
	if adjust != nil {
		adjust(&config)
	}
	files, err := pkgnamed.Render(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		writeFile(t, filepath.Join(p.Layout.ConfigDir, name), text)
	}
	p.process = &process{
		dir: dir, config: filepath.Join(p.Layout.ConfigDir, pkgnamed.MainFile), waitReady: p.waitReady,
		listens: []netip.AddrPort{p.DNS(), loopback(p.Layout.ControlPort), loopback(p.Layout.StatisticsPort)},
	}
	Release(t, p.NoticeAddr()) // The sidecar's.
	p.start(t)
	return p
}

// DNS returns where the server answers questions.
func (p *Pod) DNS() netip.AddrPort { return loopback(p.Layout.Port) }

// ControlAddr returns the address of the control channel.
func (p *Pod) ControlAddr() string { return loopback(p.Layout.ControlPort).String() }

// StatisticsURL returns the base address of the statistics channel.
func (p *Pod) StatisticsURL() string { return "http://" + loopback(p.Layout.StatisticsPort).String() }

// NoticeAddr returns where named expects the sidecar to listen for NOTIFY. Nobody listens there unless a test does.
func (p *Pod) NoticeAddr() netip.AddrPort { return loopback(p.Layout.NoticePort) }

func loopback(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
}

func layoutIn(t testing.TB, dir string) pkgnamed.Layout {
	l := pkgnamed.Layout{
		ConfigDir: dir + "/etc", KeyDir: dir + "/etc/keys", CacheDir: dir + "/cache", ZonesDir: dir + "/cache/zones",
		RunDir: dir + "/run", ControlKeyFile: dir + "/run/rndc.key",
	}
	for _, port := range []*int{&l.Port, &l.ControlPort, &l.StatisticsPort, &l.NoticePort} {
		*port = int(Reserve(t).Port())
	}
	for _, d := range []string{l.ConfigDir, l.KeyDir + "/update", l.KeyDir + "/transfer", l.ZonesDir, l.RunDir} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (p *Pod) writeKeys(t testing.TB, server v1beta1.ServerRole) {
	var err error
	if p.Control, err = rndc.NewKey(""); err != nil {
		t.Fatal(err)
	}
	writeFile(t, p.Layout.ControlKeyFile, p.Control.Clause())
	for role, key := range map[pkgnamed.KeyRole]**wire.Key{pkgnamed.KeyUpdate: &p.UpdateKey, pkgnamed.KeyTransfer: &p.TransferKey} {
		if *key == nil {
			if *key, err = pkgnamed.NewKey("test", "server", role); err != nil {
				t.Fatal(err)
			}
		}
		ring, err := pkgnamed.NewKeyring(role, *key, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if role == pkgnamed.KeyTransfer || server == v1beta1.RolePrimary {
			p.WriteKeyring(t, role, ring)
		}
	}
}

// WriteKeyring writes a key ring to where named reads it when it reloads its configuration.
func (p *Pod) WriteKeyring(t testing.TB, role pkgnamed.KeyRole, ring pkgnamed.Keyring) {
	t.Helper()
	data, err := ring.Data(role)
	if err != nil {
		t.Fatal(err)
	}
	for entry, value := range data {
		writeFile(t, filepath.Join(p.Layout.KeyDir, string(role), entry), string(value))
	}
}

// waitReady waits until the server answers on its control channel.
func (p *Pod) waitReady(deadline time.Time) error {
	control := rndc.NewClient(p.ControlAddr(), p.Control)
	defer func() { _ = control.Close() }()
	return p.waitFor(deadline, "it does not answer", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := control.Command(ctx, "status")
		return err == nil
	})
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
