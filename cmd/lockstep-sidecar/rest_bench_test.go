package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/test/mtls"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

var (
	program = flag.String("program", "", "program to measure in place of this one")
	zones   = flag.Int("zones", 300, "how many zones the server has")
)

// BenchmarkRest is the memory of a sidecar that rests beside a named with zones: -benchtime 1x.
func BenchmarkRest(b *testing.B) {
	name := cmp.Or(*program, build(b))
	for b.Loop() {
		pod := namedtest.StartPod(b, v1beta1.RolePrimary, [2]*wire.Key{}, nil)
		process, at, client := startProgram(b, name, pod)
		for n := range *zones {
			soa := &bindcar.SOA{PrimaryNS: "ns1.example.", AdminEmail: "a@b.example", Serial: 1, Refresh: 3600, Retry: 600, Expire: 604800, NegativeTTL: 60}
			config := bindcar.ZoneConfig{TTL: 300, SOA: soa, Records: []bindcar.Record{{Name: "@", Type: "NS", Value: "ns1.example."}, {Name: "www", Type: "A", Value: "192.0.2.1"}}}
			zone := bindcar.CreateZone{ZoneName: fmt.Sprintf("z%d.example", n), ZoneType: bindcar.Primary, UpdateKeyName: pod.UpdateKey.Name, ZoneConfig: config}
			if err := client.CreateZone(b.Context(), at, zone); err != nil {
				b.Fatal(err)
			}
		}
		// What the fleet manager and the kubelet ask in half a minute.
		for range 10 {
			if list, err := client.Zones(b.Context(), at); err != nil || list.Count < *zones {
				b.Fatal(list.Count, err)
			}
			time.Sleep(3 * time.Second)
		}
		for _, field := range []string{"VmRSS", "RssAnon", "RssFile"} {
			b.ReportMetric(memory(b, process.Pid, field), field+"-MiB")
		}
	}
}

// startProgram runs the sidecar of a pod as a process of its own until the benchmark ends.
func startProgram(b *testing.B, name string, pod *namedtest.Pod) (*os.Process, bindcar.Address, *bindcar.Client) {
	b.Helper()
	dir, authority := b.TempDir(), mtls.NewAuthority(b)
	mtls.WriteFiles(b, dir, mtls.Instance(b, authority, "dns", "dns-primary-0"))
	listen, health := namedtest.Reserve(b), namedtest.Reserve(b)
	namedtest.Release(b, listen)
	namedtest.Release(b, health)
	cmd := exec.Command(name, "bindcar", "--listen="+listen.String(), "--health-address="+health.String(), "--notice-address="+pod.NoticeAddr().String(),
		"--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"), "--client-ca-file="+filepath.Join(dir, "ca.crt"),
		"--rndc-address="+pod.ControlAddr(), "--rndc-key-file="+pod.Layout.ControlKeyFile, "--statistics-url="+pod.StatisticsURL(),
		"--zones-dir="+pod.Layout.ZonesDir, "--key-names-dir="+pod.Layout.KeyDir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	at := bindcar.Address{Addr: listen, Namespace: "dns", Instance: "dns-primary-0"}
	client := mtls.Client(b, authority, bindcar.FleetIdentity)
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for client.Ready(ctx, at) != nil {
		if ctx.Err() != nil {
			b.Fatal("the sidecar is not ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return cmd.Process, at, client
}

// memory reads a field of a process's status.
func memory(b *testing.B, pid int, field string) (mebibytes float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + field + `:\s+(\d+) kB$`).FindSubmatch(text)
	if found == nil {
		b.Fatalf("no %s in %s", field, text)
	}
	kibibytes, _ := strconv.ParseFloat(string(found[1]), 64)
	return kibibytes / 1024
}
