package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// Every kind passes kstatus, by which Helm and others wait: an object is in progress from the moment at which it is made or changed, until it is
// ready or has failed. Those that wait for others stay in progress.
func TestKinds(t *testing.T) {
	kube.Isolated(t)
	c, team := kube.Client(t), kube.Namespace(t, "kinds")
	ready := create(t, c, team, "testdata/kinds.yaml")
	waiting := create(t, c, team, "testdata/waiting.yaml")
	failing := create(t, c, team, "testdata/failing.yaml")
	requireAllKinds(t, slices.Concat(ready, waiting))
	waitStatus(t, c, status.CurrentStatus, ready...)
	failed := map[string]bool{"Bind9Cluster": true, "CNAMERecord": true, "DNSEndpoint": true}
	waitStatus(t, c, status.FailedStatus, slices.DeleteFunc(failing, func(o *unstructured.Unstructured) bool { return !failed[o.GetKind()] })...)
	waitStatus(t, c, status.InProgressStatus, waiting...)

	for _, o := range ready {
		if o.GetKind() == "ARecord" {
			if err := unstructured.SetNestedStringSlice(o.Object, []string{"192.0.2.7"}, "spec", "ipv4Addresses"); err != nil {
				t.Fatal(err)
			}
			kube.Eventually(t, kube.Answer, func(ctx context.Context) error {
				stored := o.DeepCopy()
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
					return err
				}
				stored.Object["spec"] = o.Object["spec"]
				if err := c.Update(ctx, stored); err != nil {
					return err
				}
				requireInProgress(t, stored)
				return nil
			})
			waitStatus(t, c, status.CurrentStatus, o)
		}
	}
}

// create makes the objects of a file, and fails the test for each that does not begin in progress. Cluster-scoped ones are deleted afterwards.
func create(t *testing.T, c client.Client, namespace, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLToJSONDecoder(strings.NewReader(strings.ReplaceAll(string(text), "NAMESPACE", namespace)))
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if strings.HasPrefix(o.GetName(), namespace) {
			t.Cleanup(func() {
				if err := c.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			})
		} else {
			o.SetNamespace(namespace)
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() != "ZoneGrant" { // It has no status: nothing has to happen for it to hold.
			requireInProgress(t, o)
		}
		all = append(all, o)
	}
}

// requireInProgress fails the test unless an object, as kube-apiserver answered a write with it, is in progress.
func requireInProgress(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if result, err := status.Compute(o); err != nil || result.Status != status.InProgressStatus {
		t.Errorf("%s %s has just been written and is %+v (%v); status: %v", o.GetKind(), o.GetName(), result, err, o.Object["status"])
	}
}

// requireAllKinds fails the test if it has no object of a kind of ours.
func requireAllKinds(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	missing := map[string]bool{}
	for line := range strings.Lines(kube.Kubectl(t, "", "get", "customresourcedefinitions", "-l", "app.kubernetes.io/part-of=lockstep", "-o", `jsonpath={range .items[*]}{.spec.names.kind}{"\n"}{end}`)) {
		missing[strings.TrimSpace(line)] = true
	}
	if len(missing) < 16 {
		t.Errorf("only the kinds %v are known", slices.Sorted(maps.Keys(missing)))
	}
	for _, o := range all {
		delete(missing, o.GetKind())
	}
	for kind := range missing {
		t.Errorf("the test has no %s", kind)
	}
}

// waitStatus waits until all objects have a status by kstatus.
func waitStatus(t *testing.T, c client.Client, want status.Status, all ...*unstructured.Unstructured) {
	t.Helper()
	kube.Eventually(t, kube.Start, func(ctx context.Context) error {
		for _, o := range all {
			stored := o.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
				return err
			}
			result, err := status.Compute(stored)
			if err != nil {
				return err
			}
			if result.Status != want {
				return fmt.Errorf("%s %s is %s, want %s: %s", o.GetKind(), o.GetName(), result.Status, want, result.Message)
			}
		}
		return nil
	})
	t.Logf("%d objects are %s", len(all), want)
}
