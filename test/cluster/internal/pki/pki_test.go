package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func authority(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := EnsureAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCertificateVerifies(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, dir)
	if err := a.Ensure(Certificate{Name: "server", User: "u", Groups: []string{"g"}, Hosts: []string{"a.example", "10.1.2.3"}}); err != nil {
		t.Fatal(err)
	}
	p, ok, err := loadAuthority(filepath.Join(dir, "server"))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.ca.cert)
	for _, host := range []string{"a.example", "10.1.2.3"} {
		_, err := p.cert.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			t.Errorf("verifying for %s: %v", host, err)
		}
	}
	if mode := must(os.Stat(filepath.Join(dir, "server.key"))).Mode().Perm(); mode != 0o600 {
		t.Errorf("the key's file has mode %o", mode)
	}
}

func must(i os.FileInfo, err error) os.FileInfo {
	if err != nil {
		panic(err)
	}
	return i
}

func TestEnsureKeepsWhatStands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.crt")
	c := Certificate{Name: "c", User: "u", Hosts: []string{"10.1.2.3"}}
	ensure := func(c Certificate) string {
		if err := authority(t, dir).Ensure(c); err != nil {
			t.Fatal(err)
		}
		return contents(t, file)
	}
	first := ensure(c)
	if ensure(c) != first {
		t.Error("a good certificate was made again")
	}
	c.Hosts = []string{"10.1.2.4"}
	if ensure(c) == first {
		t.Error("another address did not lead to another certificate")
	}
}

func TestStandsUntilNearItsEnd(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, dir)
	c := Certificate{Name: "c", User: "u"}
	if err := a.Ensure(c); err != nil {
		t.Fatal(err)
	}
	p, _, err := loadAuthority(filepath.Join(dir, "c"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		at   time.Time
		want bool
	}{
		"new":          {time.Now(), true},
		"near its end": {p.cert.NotAfter.Add(-renewBefore + time.Hour), false},
		"ended":        {p.cert.NotAfter.Add(time.Hour), false},
	} {
		if got := a.isCurrent(p.cert, c.certificateTemplate(), tc.at); got != tc.want {
			t.Errorf("%s: stands = %v, want %v", name, got, tc.want)
		}
	}
}
