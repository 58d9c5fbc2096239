package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// places are where the cluster's components put files.
var places = []string{
	"/var/lib/lockstep-cluster", "/run/lockstep-cluster", "/run/containerd/*", "/run/netns/*",
	"/var/lib/kubelet/*", "/var/lib/cni/*", "/var/log/containers/*", "/var/log/pods/*",
	"/usr/libexec/kubernetes", "/etc/cni/*", "/opt/containerd", "/opt/cni", "/etc/kubernetes",
	"/sys/fs/cgroup/kubepods", "/sys/fs/cgroup/*/kubepods", "/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/*/k8s.io",
}

// traces is everything on the machine that a cluster changes, as text.
func traces(t *testing.T) string {
	t.Helper()
	var all []string
	add := func(kind string, found ...string) {
		slices.Sort(found)
		for _, f := range found {
			all = append(all, kind+" "+f)
		}
	}
	add("process", ourProcesses(t)...)
	add("mount", linesOf(t, "/proc/self/mounts")...)
	add("route", output("ip", "route")...)
	add("ipv4 rule", rules("iptables-save")...)
	add("ipv6 rule", rules("ip6tables-save")...)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		add("interface", i.Name)
	}
	for _, p := range places {
		files, _ := filepath.Glob(p)
		add("file", files...)
	}
	for _, name := range []string{"net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		add("setting", name+" "+strings.Join(linesOf(t, filepath.Join("/proc/sys", name)), " "))
	}
	return strings.Join(all, "\n")
}

// ourProcesses are the components, the shims and the containers of the probe.
func ourProcesses(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // ended meanwhile
		}
		line := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
		if strings.Contains(line, "lockstep-cluster/") || line == "/probe" {
			found = append(found, line)
		}
	}
	return found
}

// rules are the packet filter's rules and chains, without counters and without
// the chains that the kernel always has.
func rules(save string) []string {
	var found []string
	for _, line := range output(save) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "-A"):
			found = append(found, line)
		case strings.HasPrefix(line, ":") && len(fields) > 1 && fields[1] == "-":
			found = append(found, fmt.Sprint(fields[0], " chain"))
		}
	}
	return found
}

func output(name string, args ...string) []string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func linesOf(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}
