package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writing is what writes to objects of Kubernetes, in the words of its client libraries.
var writing = regexp.MustCompile(`client\.(FieldOwner|RawPatch|MergeFrom|ForceOwnership|ApplyConfigurationFromUnstructured)|` +
	`types\.(Merge|Apply|JSON|StrategicMerge)PatchType|metav1\.(Patch|Update|Apply|Create)Options|controllerutil\.(Add|Remove|Create|Set)|apply\.MergePatch\(`)

// comparedBy has, for each file that writes to objects of Kubernetes, the test that compares all annotations, labels, finalizers and owner
// references of others before and after; or why there are none of others.
var comparedBy = map[string]string{
	"extensions/clusterapi/reconcilers.go":   "a server-side apply of one condition by a field manager of its own",
	"extensions/externaldns/store.go":        "TestForeignObjectsStay",
	"extensions/migrate/steps.go":            "TestStepsKeepOthersMetadata",
	"extensions/uninstall/account.go":        "server-side applies of its own account",
	"extensions/uninstall/finalizers.go":     "TestReleaseKeepsOthersMetadata",
	"pkg/fleet/certs/inject.go":              "TestInjection",
	"pkg/fleet/certs/keeper.go":              "TestKeeperKeepsOthersMetadata",
	"pkg/fleet/dnssec/key_secret.go":         "it only creates",
	"pkg/fleet/instance/podcheck/checker.go": "a server-side apply of one condition of a pod",
	"pkg/fleet/keyrotation/rotation.go":      "TestReplacedKeyKeepsOthersMetadata",
	"pkg/kube/apply/children.go":             "TestChildKeepsOthersMetadata",
	"pkg/kube/apply/metadata.go":             "TestWritesLeaveOthersMetadata",
	"pkg/kube/apply/ownership.go":            "TestChildKeepsOthersMetadata",
	"pkg/kube/apply/status.go":               "TestWritesLeaveOthersMetadata",
	"pkg/plugin/confirm.go":                  "TestConfirm",
	"pkg/plugin/preview/cluster.go":          "dry runs only",
	"pkg/zone/reconcile/prepare.go":          "TestArrivalsLeaveTheRestOfTheZone",
	"webhook/mark/handler.go":                "FuzzMarks",
}

// TestWritesAreCompared: no write of ours touches what is not ours. Whatever writes to an object has a test of that.
func TestWritesAreCompared(t *testing.T) {
	tests, known := readTests(t), maps.Clone(comparedBy)
	delete(known, "webhook/mark/handler.go") // It answers with a patch that kube-apiserver applies.
	for name, text := range goFiles(t, false, rooms...) {
		found := writing.Find(withoutComments(text))
		if found == nil {
			continue
		}
		if _, listed := comparedBy[name]; !listed {
			t.Errorf("%s writes to objects (%s): compare what others have put on them before and after, and name that test in comparedBy", name, found)
		}
		delete(known, name)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		t.Errorf("%s writes to no object: take it out of comparedBy", name)
	}
	for name, test := range comparedBy {
		if strings.HasPrefix(test, "Test") && !slices.ContainsFunc(tests[test], func(folder string) bool { return folder == filepath.Dir(name) }) {
			t.Errorf("%s: there is no test %s beside it", name, test)
		}
	}
}
