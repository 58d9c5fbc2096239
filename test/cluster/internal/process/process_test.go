package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func sleeper(t *testing.T, dir string, args ...string) Spec {
	t.Helper()
	return Spec{Name: "sleeper", Args: args, Log: filepath.Join(dir, "log")}
}

func TestStartFindStop(t *testing.T) {
	dir := t.TempDir()
	started, err := Start(dir, sleeper(t, dir, "sleep", "12345.25"))
	if err != nil {
		t.Fatal(err)
	}
	found, ok, err := Load(dir, "sleeper")
	if err != nil || !ok || found != started {
		t.Fatalf("Load: %+v, %v, %v; want %+v", found, ok, err, started)
	}
	byArgs, err := Find(func(args []string) bool { return slices.Equal(args, []string{"sleep", "12345.25"}) })
	if err != nil || len(byArgs) != 1 || byArgs[0] != started.Identity {
		t.Errorf("Find: %+v, %v; want %+v", byArgs, err, started.Identity)
	}
	if err := Stop(dir, "sleeper", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if started.Alive() {
		t.Error("it lives after Stop")
	}
	if _, ok, _ := Load(dir, "sleeper"); ok {
		t.Error("Stop left the pid file")
	}
	if err := Stop(dir, "sleeper", time.Second); err != nil {
		t.Errorf("stopping what does not run: %v", err)
	}
}

func TestStopKillsTheDeaf(t *testing.T) {
	dir := t.TempDir()
	trapped := filepath.Join(dir, "trapped")
	r, err := Start(dir, sleeper(t, dir, "sh", "-c", "trap '' TERM; : >"+trapped+"; while :; do sleep 1; done"))
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(trapped); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the process does not run")
		}
	}
	if err := Stop(dir, "sleeper", 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if r.Alive() {
		t.Error("it lives after Stop")
	}
}

func TestStopSparesAStranger(t *testing.T) {
	dir := t.TempDir()
	r, err := Start(dir, sleeper(t, dir, "sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Terminate(0) }()
	stranger := r
	stranger.Start-- // as if the pid had been another's when it was written down
	if err := saveRecord(dir, "sleeper", stranger); err != nil {
		t.Fatal(err)
	}
	if err := Stop(dir, "sleeper", time.Second); err != nil {
		t.Fatal(err)
	}
	if !r.Alive() {
		t.Error("Stop ended a process that it had not started")
	}
}

func TestFingerprint(t *testing.T) {
	input := filepath.Join(t.TempDir(), "config")
	write := func(s string) {
		if err := os.WriteFile(input, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fingerprint := func(args ...string) string {
		fp, err := Spec{Name: "x", Args: args, Inputs: []string{input}}.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return fp
	}
	write("a")
	first := fingerprint("x", "--flag")
	if fingerprint("x", "--flag") != first {
		t.Error("the same gives another fingerprint")
	}
	if fingerprint("x", "--other") == first {
		t.Error("other arguments give the same fingerprint")
	}
	write("b")
	if fingerprint("x", "--flag") == first {
		t.Error("another input gives the same fingerprint")
	}
}
