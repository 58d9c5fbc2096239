package rndc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestControlCommands(t *testing.T) {
	server := namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, nil)
	control := rndc.NewClient(server.ControlAddr(), server.Control)
	defer func() { _ = control.Close() }()
	ctx := testContext(t)

	text, err := control.Command(ctx, "status")
	if err != nil || !strings.Contains(text, "server is up and running") {
		t.Fatalf("status: %q, %v", text, err)
	}

	start := time.Now()
	const zones = 200
	for i := range zones {
		zone := fmt.Sprintf("z%d.example", i)
		content := "$TTL 60\n@ SOA ns.invalid. host.invalid. 7 3600 600 86400 60\n@ NS ns.invalid.\n"
		if err := os.WriteFile(filepath.Join(server.Layout.ZonesDir, zone), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := control.Command(ctx, fmt.Sprintf("addzone %q { type primary; file %q; };", zone, "zones/"+zone)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d zones in %v", zones, time.Since(start))

	text, err = control.Command(ctx, "zonestatus z7.example")
	if err != nil || !strings.Contains(text, "serial: 7") {
		t.Errorf("zonestatus: %q, %v", text, err)
	}

	var refused *rndc.CommandError
	_, err = control.Command(ctx, `addzone "z7.example" { type primary; file "zones/z7.example"; };`)
	if !errors.As(err, &refused) || !refused.Exists() || refused.NotFound() {
		t.Errorf("adding a zone twice: %v", err)
	}
	_, err = control.Command(ctx, "zonestatus nowhere.example")
	if !errors.As(err, &refused) || !refused.NotFound() || refused.Exists() {
		t.Errorf("asking for an unknown zone: %#v", err)
	}
	_, err = control.Command(ctx, "delzone nowhere.example")
	if !errors.As(err, &refused) || !refused.NotFound() {
		t.Errorf("deleting an unknown zone: %#v", err)
	}
	if _, err := control.Command(ctx, "status"); err != nil {
		t.Errorf("the connection does not survive a refusal: %v", err)
	}
}

func TestControlWrongKey(t *testing.T) {
	server := namedtest.StartPod(t, v1beta1.RoleSecondary, [2]*wire.Key{}, nil)
	key, err := rndc.NewKey("")
	if err != nil {
		t.Fatal(err)
	}
	_, err = rndc.NewClient(server.ControlAddr(), key).Command(testContext(t), "status")
	if !errors.Is(err, rndc.ErrAuth) {
		t.Errorf("got %v, want ErrControlAuth", err)
	}
}

func TestControlAlgorithms(t *testing.T) {
	for _, algorithm := range []string{"hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"} {
		key, err := rndc.NewKey(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "rndc.key")
		if err := os.WriteFile(file, []byte(key.Clause()), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := rndc.ReadKey(file)
		if err != nil || string(read.Secret) != string(key.Secret) || read.Algorithm != algorithm {
			t.Errorf("%s: read back %v, %v", algorithm, read, err)
		}
	}
}
