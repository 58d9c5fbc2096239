package sidecar

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// TestRenewal: a certificate that is replaced is served from then on, and callers are verified with the authorities that come
// with it, without a restart; files that do not fit together, or are gone for a moment, change nothing.
func TestRenewal(t *testing.T) {
	dir := t.TempDir()
	issue := func() certs.State {
		t.Helper()
		authority := mtls.NewAuthority(t)
		mtls.WriteFiles(t, dir, mtls.Instance(t, authority, "dns", "dns-primary-0"))
		return authority
	}
	first, o := issue(), optionsIn(dir)
	config, err := o.tlsConfig()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httperror.WriteJSON(w, http.StatusOK, bindcar.ZoneList{})
	}))
	web.TLS, web.Config.ErrorLog = config, log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	ask := func(authority certs.State) error {
		_, err := mtls.Client(t, authority, bindcar.ControllerIdentity).Zones(testContext(t), serverAt(web.URL))
		return err
	}
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	next := issue()
	eventually(t, func() bool { return ask(next) == nil })
	if err := ask(first); err == nil {
		t.Error("an authority that was replaced is still trusted")
	}
	for _, file := range []string{o.TLSCertFile, o.ClientCAFile} {
		if err := os.WriteFile(file, []byte("half of"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(next); err != nil {
		t.Errorf("a broken file: %v", err)
	}
	for _, file := range []string{o.TLSCertFile, o.ClientCAFile} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(next); err != nil {
		t.Errorf("a file that is gone: %v", err)
	}
	last := issue()
	eventually(t, func() bool { return ask(last) == nil })
}

// TestCertificatesAreNeeded: nobody is served in clear text, or without being asked for a certificate.
func TestCertificatesAreNeeded(t *testing.T) {
	cases := map[string]struct {
		change func(*Options)
		ok     bool
	}{
		"all files":         {func(*Options) {}, true},
		"no certificate":    {func(o *Options) { o.TLSCertFile = "" }, false},
		"no key":            {func(o *Options) { o.TLSKeyFile = "" }, false},
		"nobody to verify":  {func(o *Options) { o.ClientCAFile = "" }, false},
		"only on loopback":  {func(o *Options) { o.Listen, o.TLSCertFile, o.TLSKeyFile = []string{"127.0.0.1:8080"}, "", "" }, false},
		"no health address": {func(o *Options) { o.HealthAddress = "" }, false},
	}
	for name, c := range cases {
		o := NewOptions()
		c.change(o)
		if err := o.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	mtls.WriteFiles(t, dir, mtls.Instance(t, mtls.NewAuthority(t), "dns", "dns-primary-0"))
	for _, file := range []string{"ca.crt", "tls.crt"} {
		mtls.WriteFiles(t, dir, map[string][]byte{file: nil})
		if _, err := optionsIn(dir).tlsConfig(); err == nil {
			t.Errorf("starts with an empty %s", file)
		}
		mtls.WriteFiles(t, dir, mtls.Instance(t, mtls.NewAuthority(t), "dns", "dns-primary-0"))
	}
}
