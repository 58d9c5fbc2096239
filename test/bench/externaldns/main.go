// Command externaldns measures how long it takes from the start of external-dns, with as many Services as a flag says, until the primary and
// both secondaries serve their names by `lockstep externaldns`. The reference, in the same run, is the same external-dns with its own provider
// rfc2136 and its registry of TXT records, until one bare server has the same names. Another one is what as many objects cost kube-apiserver.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

var (
	services = flag.Int("services", 5000, "Services, each with one name")
	programs = flag.String("programs", "_output/external-dns", "the folder with external-dns and lockstep")
	batch    = flag.Int("batch", 500, "changes in a message of the provider rfc2136")
	limit    = flag.Duration("limit", 20*time.Minute, "when to give up")
)

// The zones of ours and of the peer. Each Service asks for a name in both.
const (
	ourZone  = "ours.example"
	peerZone = "peer.example"
)

func main() { rig.Main("externaldns", measure) }

func measure(ctx context.Context, r *rig.Rig) error {
	ours, peers := rig.Objects.WantedRecords(ourZone, *services), rig.Objects.WantedRecords(peerZone, *services)
	var objects []client.Object
	for i := range ours {
		s := &corev1.Service{ObjectMeta: r.ObjectMeta(fmt.Sprintf("service-%d", i), nil)}
		s.Annotations = map[string]string{
			"external-dns.alpha.kubernetes.io/hostname": ours[i].Name + "," + peers[i].Name,
			"external-dns.alpha.kubernetes.io/target":   ours[i].IP,
		}
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "elsewhere.example" // kube-proxy has nothing to do for it.
		objects = append(objects, s)
	}
	if err := r.CreateZone(ctx, "ours", ourZone); err != nil {
		return err
	}
	created, err := r.CreateAll(ctx, objects)
	if err != nil {
		return err
	}
	fmt.Println("Services:", created)
	reference, err := measurePeer(ctx, r, peers)
	if err != nil {
		return err
	}
	least, err := measureLeast(ctx, r, ours)
	if err != nil {
		return err
	}
	took, err := measureOurs(ctx, r, ours)
	if err != nil {
		return err
	}
	r.AddResult("externaldns", took.Seconds(), reference.Seconds(), "s",
		fmt.Sprintf("external-dns with its provider rfc2136, %d changes in a message, until one server has the names of %d Services", *batch, *services))
	r.AddResult("externaldns-least", took.Seconds(), least.Seconds(), "s",
		fmt.Sprintf("creating %d objects of a bare kind, for each of which a webhook is called that looks at nothing", *services))
	return nil
}

// measureOurs runs external-dns with our provider until all servers of the rig have the names.
func measureOurs(ctx context.Context, r *rig.Rig, wanted []rig.Address) (time.Duration, error) {
	ports, err := namedtest.FreePorts(2)
	if err != nil {
		return 0, err
	}
	address := fmt.Sprintf("localhost:%d", ports[0])
	provider, err := start("lockstep", "externaldns", "--bind-address="+address, fmt.Sprintf("--health-probe-bind-address=localhost:%d", ports[1]), "--namespaces="+r.Namespace)
	if err != nil {
		return 0, err
	}
	defer provider.stop()
	err = rig.PollUntil(ctx, time.Minute, 100*time.Millisecond, func() error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return 0, err
	}
	took, err := untilServed(ctx, r, ourZone, wanted, "--provider=webhook", "--webhook-provider-url=http://"+address, "--registry=noop")
	if err == nil {
		err = r.WaitQuiet(ctx, 3*time.Second)
	}
	provider.stop()
	fmt.Println("lockstep externaldns:", provider.usage())
	return took, err
}

// measurePeer runs external-dns with its own provider until a bare server has the names.
func measurePeer(ctx context.Context, r *rig.Rig, wanted []rig.Address) (time.Duration, error) {
	bare, err := rig.StartBare(ctx)
	if err != nil {
		return 0, err
	}
	defer bare.Close()
	key, err := bare.AddUpdatable(ctx, peerZone)
	if err != nil {
		return 0, err
	}
	one := *r
	one.Primary = bare.Addresses()[0]
	one.Servers, one.Transfer = []netip.AddrPort{one.Primary}, key
	return untilServed(ctx, &one, peerZone, wanted, "--provider=rfc2136", "--registry=txt", "--txt-owner-id=bench", "--rfc2136-host="+one.Primary.Addr().String(),
		fmt.Sprintf("--rfc2136-port=%d", one.Primary.Port()), "--rfc2136-zone="+peerZone, "--rfc2136-tsig-axfr", "--rfc2136-tsig-keyname="+strings.TrimSuffix(key.Name, "."),
		"--rfc2136-tsig-secret="+key.Secret, "--rfc2136-tsig-secret-alg=hmac-sha256", fmt.Sprintf("--rfc2136-batch-change-size=%d", *batch))
}

// untilServed runs external-dns with the given provider, and returns how long after its start every server of the rig had all names of a zone.
func untilServed(ctx context.Context, r *rig.Rig, zone string, wanted []rig.Address, provider ...string) (time.Duration, error) {
	f, err := r.FollowZone(ctx, zone, wanted)
	if err != nil {
		return 0, err
	}
	ports, err := namedtest.FreePorts(1)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	p, err := start("external-dns", append(provider, "--kubeconfig="+os.Getenv("KUBECONFIG"), "--source=service", "--namespace="+r.Namespace, "--domain-filter="+zone, "--policy=sync",
		"--interval=5s", fmt.Sprintf("--metrics-address=localhost:%d", ports[0]))...)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	at, err := f.WaitServed(ctx, *limit)
	p.stop()
	fmt.Printf("%s, %d names: %.1f s; external-dns: %s\n", zone, len(wanted), at.Sub(began).Seconds(), p.usage())
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, p.lastWords())
	}
	return at.Sub(began), f.CheckTransfer(ctx)
}

// program is one that runs.
type program struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  bool
}

// start runs a program of the folder.
func start(name string, args ...string) (*program, error) {
	p := &program{cmd: exec.Command(filepath.Join(*programs, name), args...)}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = &p.output, &p.output, os.Environ()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p, p.cmd.Start()
}

// stop ends the program, and waits until it has ended.
func (p *program) stop() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// usage describes what a program that has ended has used.
func (p *program) usage() string {
	state := p.cmd.ProcessState
	return fmt.Sprintf("%.1f s of CPU, %.0f MiB at most", (state.UserTime() + state.SystemTime()).Seconds(), float64(state.SysUsage().(*syscall.Rusage).Maxrss)/1024)
}

// lastWords returns the end of what the program has written.
func (p *program) lastWords() string {
	text := p.output.String()
	return text[max(0, len(text)-2000):]
}
