package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// NSUpdate is BIND's own client, ready to run: a script that adds RRs to a zone, and the key, in a directory that only
// this user can read.
type NSUpdate struct {
	dir    string
	script []byte
}

// PrepareNSUpdate returns an nsupdate that adds the RRs to a zone on the primary, batch of them with each "send".
func (r *Rig) PrepareNSUpdate(ctx context.Context, zone string, rrs []Address, batch int) (*NSUpdate, error) {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: named.KeySecretName(clusterName, named.KeyUpdate)}, secret); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lockstep-bench-")
	if err != nil {
		return nil, err
	}
	n := &NSUpdate{dir: dir}
	if err := os.WriteFile(n.keyFile(), secret.Data[named.KeyClauseEntry], 0o600); err != nil {
		n.Close()
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "server %s %d\nzone %s.\nttl 3600\n", r.Primary.Addr(), r.Primary.Port(), zone)
	for i, a := range rrs {
		fmt.Fprintf(&b, "update add %s A %s\n", a.Name, a.IP)
		if (i+1)%batch == 0 || i == len(rrs)-1 {
			b.WriteString("send\n")
		}
	}
	n.script = b.Bytes()
	return n, nil
}

func (n *NSUpdate) keyFile() string { return filepath.Join(n.dir, "update.key") }

// Close removes the key.
func (n *NSUpdate) Close() { _ = os.RemoveAll(n.dir) }

// Run runs the program to its end.
func (n *NSUpdate) Run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "nsupdate", "-k", n.keyFile())
	cmd.Stdin = bytes.NewReader(n.script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nsupdate: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
