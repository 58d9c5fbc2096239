package offline

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/test/corpus"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

const corpusFolder = "../../test/corpus"

// Every case of the corpus comes out as it says, without a cluster.
func TestCorpus(t *testing.T) {
	checker, err := NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := corpus.LoadCases(corpusFolder)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := corpus.LoadWorld(corpusFolder, "corpus")
	if err != nil {
		t.Fatal(err)
	}
	var world []manifest.Object
	for _, o := range stored {
		world = append(world, file(t, "world", o))
	}
	kinds := map[string]int{}
	for _, c := range cases {
		kinds[c.Kind]++
		t.Run(c.Name, func(t *testing.T) { checkCase(t, checker, world, c) })
	}
	if len(cases) < 150 || len(kinds) != len(checker.kinds) {
		t.Errorf("%d cases of %d kinds, want 150 or more of all %d", len(cases), len(kinds), len(checker.kinds))
	}
}

func checkCase(t *testing.T, checker *Checker, world []manifest.Object, c corpus.Case) {
	t.Helper()
	object := file(t, "case", c.NewObject("corpus", c.Spec))
	findings := beside(t, checker, world, object, old(t, c))
	var refusals, warnings []string
	for _, f := range findings {
		if f.Level == Error {
			refusals = append(refusals, f.Message)
		} else {
			warnings = append(warnings, f.Message)
		}
	}
	for _, problem := range c.CheckOutcome(strings.Join(refusals, "\n"), warnings) {
		t.Error(problem)
	}
	if len(refusals) == 0 {
		for _, difference := range corpus.FieldDifferences("spec", c.Stored, object.Object["spec"].(map[string]any)) {
			t.Errorf("stored: %s", difference)
		}
	}
}

// beside gives what is found at the object, applied to the world.
func beside(t *testing.T, checker *Checker, world []manifest.Object, object manifest.Object, before []manifest.Object) []Finding {
	t.Helper()
	var all []manifest.Object
	for _, o := range world {
		o.Unstructured = *o.DeepCopy() // A check fills in defaults.
		all = append(all, o)
	}
	findings, _, err := checker.Check(t.Context(), append(all, object), before, "corpus")
	if err != nil {
		t.Fatal(err)
	}
	findings = slices.DeleteFunc(findings, func(f Finding) bool { // Cases say what admission says, which does not warn of these.
		return f.Rule == trap.MissingGlue || f.Rule == trap.AliasTarget || f.Rule == trap.SeveralPolicies
	})
	var its []Finding
	for _, f := range findings {
		if f.File != object.File {
			t.Fatalf("in the world: %s", f.Text())
		}
		its = append(its, f)
	}
	return its
}

// file is an object as it is read from a file.
func file(t *testing.T, name string, o *unstructured.Unstructured) manifest.Object {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	objects, faults := manifest.Parse(name, text)
	if len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), faults)
	}
	return objects[0]
}

// old is the object before the update, when the case is one.
func old(t *testing.T, c corpus.Case) []manifest.Object {
	t.Helper()
	if c.OldSpec == nil {
		return nil
	}
	return []manifest.Object{file(t, "old", c.NewObject("corpus", c.OldSpec))}
}
