package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/corpus"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// warningLog collects the warnings that kube-apiserver sends beside its answers.
type warningLog struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warningLog) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last call.
func (w *warningLog) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// Every case of the corpus comes out the same on a real kube-apiserver, by dry run, with schemas, rules and webhooks.
func TestAdmissionCorpus(t *testing.T) {
	kube.Isolated(t)
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it-corpus"), zone: "corpus.example", object: "world"}
	f.waitWebhookAnswers()
	folder := kube.Root(t) + "/test/corpus"
	cases, err := corpus.LoadCases(folder)
	if err != nil {
		t.Fatal(err)
	}
	world, err := corpus.LoadWorld(folder, f.namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range world {
		f.create(o)
	}
	warnings := &warningLog{}
	config := rest.CopyConfig(kube.Config(t))
	config.WarningHandler = warnings
	c := client.WithFieldValidation(kube.ClientAs(t, config), "Strict")
	f.worldKnown(c, warnings, cases)
	for _, test := range cases {
		t.Run(test.Name, func(t *testing.T) { checkCorpusCase(t, c, warnings, f.namespace, test) })
	}
}

// worldKnown waits until the webhook's caches have the world: until those cases come out right that need something of it.
func (f *fixture) worldKnown(c client.Client, warnings *warningLog, cases []corpus.Case) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		for _, test := range cases {
			if test.Labels["zone"] != "world" || test.OldSpec != nil {
				continue
			}
			refusal := refusalOf(c.Create(ctx, test.NewObject(f.namespace, runtime.DeepCopyJSON(test.Spec)), client.DryRunAll))
			if problems := test.OnCluster().CheckOutcome(refusal, warnings.take()); len(problems) > 0 {
				return fmt.Errorf("%s: %s", test.Name, problems[0])
			}
		}
		return nil
	})
}

func checkCorpusCase(t *testing.T, c client.Client, warnings *warningLog, namespace string, test corpus.Case) {
	t.Helper()
	object := test.NewObject(namespace, runtime.DeepCopyJSON(test.Spec))
	warnings.take()
	var refusal string
	if test.OldSpec == nil {
		refusal = refusalOf(c.Create(t.Context(), object, client.DryRunAll))
	} else {
		refusal = dryUpdate(t, c, warnings, object, test)
	}
	for _, problem := range test.OnCluster().CheckOutcome(refusal, warnings.take()) {
		t.Error(problem)
	}
	if refusal == "" {
		for _, difference := range corpus.FieldDifferences("spec", test.Stored, object.Object["spec"].(map[string]any)) {
			t.Errorf("stored: %s", difference)
		}
	}
}

// dryUpdate makes an object of the old specification, and asks for the update to the new one.
func dryUpdate(t *testing.T, c client.Client, warnings *warningLog, object *unstructured.Unstructured, test corpus.Case) string {
	t.Helper()
	// A name of its own for each case: the controller may hold a deleted object for a moment.
	old := test.NewObject(object.GetNamespace(), runtime.DeepCopyJSON(test.OldSpec))
	old.SetName("")
	old.SetGenerateName("case-")
	if err := c.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Delete(t.Context(), old); err != nil {
			t.Error(err)
		}
	}()
	return refusalOf(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
			return err
		}
		warnings.take()
		update := old.DeepCopy()
		update.Object["spec"] = runtime.DeepCopyJSON(test.Spec)
		if err := c.Update(t.Context(), update, client.DryRunAll); err != nil {
			return err
		}
		*object = *update
		return nil
	}))
}

func refusalOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(err.Error())
}
