package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// chainPrefixes are those of the chains that kube-proxy and the kubelet, the
// CNI plugins and AcceptBridge make.
var chainPrefixes = []string{"KUBE-", "CNI-", "LOCKSTEP-"}

// acceptBridge lets traffic of the pods pass on machines that drop forwarded
// or incoming packets by default, as Docker and most firewalls make them.
const acceptBridge = `*filter
:LOCKSTEP-BRIDGE - [0:0]
-A LOCKSTEP-BRIDGE -i ` + Bridge + ` -o ` + Bridge + ` -j ACCEPT
-A LOCKSTEP-BRIDGE -i ` + Bridge + ` -m addrtype --dst-type LOCAL -j ACCEPT
COMMIT
`

// AcceptBridge accepts packets between pods and from pods to the node.
func AcceptBridge(ctx context.Context) error {
	if _, err := runInput(ctx, acceptBridge, "iptables-restore", "--noflush", "-w"); err != nil {
		return err
	}
	for _, chain := range []string{"FORWARD", "INPUT"} {
		jump := []string{chain, "-i", Bridge, "-j", "LOCKSTEP-BRIDGE"}
		if _, err := runCommand(ctx, "iptables", append([]string{"-w", "-C"}, jump...)...); err == nil {
			continue
		}
		if _, err := runCommand(ctx, "iptables", append([]string{"-w", "-I"}, jump...)...); err != nil {
			return err
		}
	}
	return nil
}

// ErrForeignChains means that another Kubernetes filters packets here.
var ErrForeignChains = errors.New("packet filter chains of another Kubernetes exist")

// CheckChains fails with ErrForeignChains when there are chains that look like
// the cluster's. It is asked before the cluster has made any.
func CheckChains(ctx context.Context) error {
	for _, family := range []string{"iptables", "ip6tables"} {
		saved, err := runCommand(ctx, family+"-save")
		if err != nil {
			continue // no such family here, so no chains of it
		}
		if chains := clusterChains(saved); len(chains) > 0 {
			return fmt.Errorf("%w: %s has %s; use that cluster by setting KUBECONFIG, or remove what is left of it",
				ErrForeignChains, family, chains[0])
		}
	}
	return nil
}

// RemoveChains removes the cluster's chains and the rules that lead to them.
func RemoveChains(ctx context.Context) error {
	var errs []error
	for _, family := range []string{"iptables", "ip6tables"} {
		if _, err := exec.LookPath(family + "-save"); err != nil {
			errs = append(errs, fmt.Errorf("chains of the packet filter may be left: install the package iptables, and try again: %w", err))
			continue
		}
		saved, err := runCommand(ctx, family+"-save")
		if err != nil {
			continue // no such family here
		}
		if script := removalScript(saved); script != "" {
			_, err := runInput(ctx, script, family+"-restore", "--noflush", "-w")
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removalScript turns what iptables-save prints into what iptables-restore --noflush
// needs in order to remove the cluster's chains, or "" if there are none.
// Naming a chain empties it; it can be deleted once nothing leads to it.
func removalScript(saved string) string {
	var out strings.Builder
	for _, t := range parseTables(saved) {
		if len(t.chains) == 0 {
			continue
		}
		fmt.Fprintln(&out, t.name)
		for _, c := range t.chains {
			fmt.Fprintf(&out, ":%s - [0:0]\n", c)
		}
		for _, rule := range t.jumps {
			fmt.Fprintln(&out, "-D"+strings.TrimPrefix(rule, "-A"))
		}
		for _, c := range t.chains {
			fmt.Fprintln(&out, "-X", c)
		}
		fmt.Fprintln(&out, "COMMIT")
	}
	return out.String()
}

// filterTable is a table of the packet filter, as far as it is the cluster's.
type filterTable struct {
	name   string   // as printed: *nat
	chains []string // the cluster's
	jumps  []string // rules of other chains that lead to them
}

func parseTables(saved string) []filterTable {
	var found []filterTable
	for s := bufio.NewScanner(strings.NewReader(saved)); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "*") {
			found = append(found, filterTable{name: line})
			continue
		}
		if len(found) == 0 {
			continue
		}
		t, fields := &found[len(found)-1], strings.Fields(line)
		switch {
		case len(fields) == 0:
		case strings.HasPrefix(line, ":") && isClusterChain(fields[0][1:]):
			t.chains = append(t.chains, fields[0][1:])
		case fields[0] == "-A" && !isClusterChain(fields[1]) && isClusterChain(jumpTarget(fields)):
			t.jumps = append(t.jumps, line)
		}
	}
	return found
}

// jumpTarget returns the chain that a rule leads to, or "".
func jumpTarget(rule []string) string {
	for i, f := range rule[:len(rule)-1] {
		if f == "-j" || f == "-g" {
			return rule[i+1]
		}
	}
	return ""
}

func clusterChains(saved string) []string {
	var chains []string
	for _, t := range parseTables(saved) {
		chains = append(chains, t.chains...)
	}
	return chains
}

func isClusterChain(chain string) bool {
	for _, p := range chainPrefixes {
		if strings.HasPrefix(chain, p) {
			return true
		}
	}
	return false
}
