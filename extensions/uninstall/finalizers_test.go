package uninstall

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOthers(t *testing.T) {
	tests := map[string]struct {
		finalizers, want []string
		ours             bool
	}{
		"none":           {nil, []string{}, false},
		"ours alone":     {[]string{"bindy.firestoned.io/finalizer"}, []string{}, true},
		"ours and other": {[]string{"a/b", "bindy.firestoned.io/finalizer", "foregroundDeletion"}, []string{"a/b", "foregroundDeletion"}, true},
		"a similar name": {[]string{"bindy.firestoned.io.example/x"}, []string{"bindy.firestoned.io.example/x"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rest, ours := foreignFinalizers(tc.finalizers)
			if !slices.Equal(rest, tc.want) || rest == nil || ours != tc.ours {
				t.Errorf("others(%q) = %q, %v", tc.finalizers, rest, ours)
			}
		})
	}
}

func TestGoesWithRelease(t *testing.T) {
	helm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	tests := map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"of kubectl":          {nil, nil, false},
		"of a release":        {helm, nil, true},
		"kept by its release": {helm, map[string]string{"helm.sh/resource-policy": "keep"}, false},
	}
	for name, tc := range tests {
		if got := goesWithRelease(&metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
