package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// The plugin's doctor finds nothing wrong with an installation that works, and each part of it that does not: the fleet manager, a caBundle
// that somebody changed, a server, and the webhook.
func TestDoctor(t *testing.T) {
	var f *pluginTest
	kube.Disruptive(t, func() { f = &pluginTest{newServedRecord(t, "doctor.example"), pluginFolder(t)} })
	f.awaitDoctor(0, `(?s)^Installation\n.*\n26 checks: 26 ok\n$`)
	f.expectOutput(2, `^error: you may read nothing of the installation`, "doctor", "--as=nobody")
	f.checkDoctorJSON()

	t.Cleanup(func() {
		kube.Kubectl(t, "", "apply", "-k", kube.Overlay)
		scaleWebhook(t, 1)
		kube.Kubectl(t, "", "-n", system, "rollout", "status", "deployment/lockstep-fleet", "--timeout=120s")
	})
	kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-fleet", "--replicas=0")
	f.waitPodsGone("fleet") // It would put right what follows.
	f.spoilBundle()
	kube.Kubectl(t, "", "-n", f.namespace, "scale", "statefulset/dns-primary-0", "--replicas=0")
	f.awaitDoctor(1,
		`failure +deployments +lockstep-fleet is scaled to 0\n +→ kubectl -n lockstep-system scale deployment/lockstep-fleet --replicas=1\n`,
		`failure +leases +(nobody holds lease lockstep-fleet|\S+ has not renewed lease lockstep-fleet since )`,
		`failure +caBundles +the caBundle of mutatingwebhookconfiguration lockstep-webhook does not verify the certificate in Secret lockstep-system/lockstep-webhook-tls`,
		`failure +dry run +no record can be created or changed: .*failed calling webhook.*x509`,
		`failure +reachable +1 of 1 servers do not serve: \S+/dns-primary-0-0: .*\n +→ kubectl -n \S+ describe pod dns-primary-0-0\n`,
	)

	kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-fleet", "--replicas=1")
	kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-webhook", "--replicas=0")
	f.awaitDoctor(1, `failure +deployments +lockstep-webhook is scaled to 0`, `failure +endpoints +Service lockstep-webhook has no endpoint that is ready`)
	scaleWebhook(t, 1)
	f.awaitDoctor(0, `\n26 checks: 26 ok\n$`)
}

// awaitDoctor runs the doctor until its exit code is this one and its report has all patterns.
func (f *pluginTest) awaitDoctor(code int, patterns ...string) {
	f.Helper()
	began := time.Now()
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		stdout, stderr, got := f.runPlugin("doctor")
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(stdout) || got != code {
				return fmt.Errorf("exit code %d, want %d and %s:\n%s%s", got, code, pattern, stdout, stderr)
			}
		}
		f.Logf("after %s: %s", time.Since(began).Round(100*time.Millisecond), stdout)
		return nil
	})
}

// checkDoctorJSON checks the report for scripts.
func (f *pluginTest) checkDoctorJSON() {
	f.Helper()
	stdout, stderr, code := f.runPlugin("doctor", "-o", "json")
	var report struct {
		Checks  []struct{ Group, Check, Result, Found string }
		Summary map[string]int
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 || len(report.Checks) != 26 || report.Summary["ok"] != 26 {
		f.Errorf("exit code %d: %v\n%s%s", code, err, stdout, stderr)
	}
}

// waitPodsGone waits until a component has no pod.
func (f *pluginTest) waitPodsGone(component string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		var pods corev1.PodList
		err := f.client.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": component})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return err
	})
}

// spoilBundle makes kube-apiserver trust another authority, and not the webhook's.
func (f *pluginTest) spoilBundle() {
	f.Helper()
	stranger, _, err := certs.DefaultPolicy.Advance(certs.State{}, time.Now(), false)
	if err != nil {
		f.Fatal(err)
	}
	kube.Kubectl(f, "", "patch", "mutatingwebhookconfiguration", "lockstep-webhook", "--type=json", "-p",
		`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"`+base64.StdEncoding.EncodeToString(stranger.Bundle())+`"}]`)
}
