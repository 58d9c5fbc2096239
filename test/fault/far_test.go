package fault

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// A network namespace stands for a network outside: a vantage and a client of the observer ask from there. It is connected to the bridge of
// the pods, and has an address of the range that they send to the node.
const (
	farName    = "lockstep-far"
	farAddress = "198.51.100.202"
	farGateway = "198.51.100.201"
	farPrefix  = "/30"
	bridge     = "lockstep0"
	// balancedRange has the addresses of all load balancers. Nothing is sent elsewhere that no load balancer takes.
	balancedRange = "198.51.100.8/29"
	vantagePort   = 8453
	vantageCAs    = "lockstep-fault-vantages"
	apiDeployment = "lockstep-apiserver"
)

// startFar makes the far network, starts a vantage there, and has the API server ask it until the test ends.
func startFar(t *testing.T, c client.Client) {
	t.Helper()
	remove := func() {
		for _, command := range []string{"netns del " + farName, "link del " + farName, "addr del " + farGateway + farPrefix + " dev " + bridge, "route del " + balancedRange + " dev " + bridge} {
			_ = ip(command) // what a run has left that was interrupted
		}
	}
	remove()
	t.Cleanup(remove)
	for _, command := range []string{
		"netns add " + farName,
		"link add " + farName + " type veth peer name eth0 netns " + farName,
		"link set " + farName + " master " + bridge + " up",
		"addr add " + farGateway + farPrefix + " dev " + bridge,
		"route add " + balancedRange + " dev " + bridge,
		"-n " + farName + " link set lo up",
		"-n " + farName + " addr add " + farAddress + farPrefix + " dev eth0",
		"-n " + farName + " link set eth0 up",
		"-n " + farName + " route add default via " + farGateway,
	} {
		if err := ip(command); err != nil {
			t.Skipf("clients in another network need the dev cluster's bridge: %v", err)
		}
	}
	startVantage(t, c)
	askVantage(t, c)
}

func ip(command string) error {
	if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, out)
	}
	return nil
}

// startVantage runs a vantage in the far network.
func startVantage(t *testing.T, c client.Client) {
	t.Helper()
	dir := t.TempDir()
	identity, err := newIdentity(netip.MustParseAddr(farAddress), clusterCA)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(identity.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "lockstep-apiserver-client"}, &secret); err != nil {
		t.Fatal(err)
	}
	certificate := writeFile(t, dir, "tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: identity.Certificate[0]}))
	keyFile := writeFile(t, dir, "tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	cmd := inFar(kube.Program(t, "bin/lockstep"), "vantage", fmt.Sprint("--bind-address=:", vantagePort), "--health-probe-bind-address=",
		"--tls-cert-file="+certificate, "--tls-private-key-file="+keyFile, "--client-ca-file="+writeFile(t, dir, "ca.crt", secret.Data["ca.crt"]))
	output, err := os.Create(filepath.Join(dir, "vantage.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = output.Close()
	})
}

// inFar is a call of a program in the far network.
func inFar(program string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", farName, program}, args...)...)
}

// askVantage has the API server ask the vantage. At the end of the test it has the arguments of before.
func askVantage(t *testing.T, c client.Client) {
	t.Helper()
	ca, err := os.ReadFile(clusterCA + ".crt")
	if err != nil {
		t.Fatal(err)
	}
	cas := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: vantageCAs}, Data: map[string]string{"ca.pem": string(ca)}}
	if err := client.IgnoreNotFound(c.Delete(t.Context(), cas)); err != nil {
		t.Fatal(err)
	}
	cas.ResourceVersion = ""
	if err := c.Create(t.Context(), cas); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), cas) })
	var deployment appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: system, Name: apiDeployment}, &deployment); err != nil {
		t.Fatal(err)
	}
	pod := &deployment.Spec.Template.Spec
	pod.Containers[0].Args = append(pod.Containers[0].Args, fmt.Sprintf("--vantage=far=https://%s:%d", farAddress, vantagePort), "--vantage-ca-file=/etc/vantages/ca.pem")
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "vantages", MountPath: "/etc/vantages"})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "vantages", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: vantageCAs}},
	}})
	rollOut := func() {
		kube.Kubectl(t, "", "-n", system, "rollout", "status", "deployment/"+apiDeployment, "--timeout=120s")
	}
	t.Cleanup(func() {
		kube.Kubectl(t, "", "-n", system, "rollout", "undo", "deployment/"+apiDeployment)
		rollOut()
	})
	if err := c.Update(t.Context(), &deployment); err != nil {
		t.Fatal(err)
	}
	rollOut()
}
