package manifest

import (
	"bytes"
	"strings"
	"testing"
)

// renderer renders the manifests of this repository with invented images.
func renderer(t *testing.T) *Renderer {
	t.Helper()
	digest := "sha256:" + strings.Repeat("0", 63)
	r, err := NewRenderer("../../..", Image{"registry.example/lockstep", "v0.1.0", digest + "1"},
		Image{"registry.example/lockstep-sidecar", "v0.1.0", digest + "3"}, Servers{
			{"9.20", Image{"registry.example/lockstep-bind9", "9.20-v0.1.0", digest + "2"}}, {"9.18", Image{"registry.example/lockstep-bind9", "9.18-v0.1.0", digest + "4"}},
		})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOverlayHasImages(t *testing.T) {
	for name, replicas := range map[string]string{"default": "1", "ha": "2", "enrolled": "1"} {
		t.Run(name, func(t *testing.T) {
			out, err := renderer(t).Overlay(name)
			if err != nil {
				t.Fatal(err)
			}
			text := string(out)
			// Four Deployments, and the fleet manager's environment.
			image := "registry.example/lockstep:v0.1.0@sha256:" + strings.Repeat("0", 63) + "1\n"
			if n := strings.Count(text, "image: "+image); n != 4 {
				t.Errorf("%d Deployments have the release's image, want 4", n)
			}
			if n := strings.Count(text, "name: LOCKSTEP_IMAGE\n          value: "+image); n != 1 {
				t.Errorf("the fleet manager has the release's image %d times, want once", n)
			}
			for _, want := range []string{"bindcar-image=registry.example/lockstep-sidecar:v0.1.0@sha256:" + strings.Repeat("0", 63) + "3",
				"bind9-image=registry.example/lockstep-bind9:9.20-v0.1.0@sha256:" + strings.Repeat("0", 63) +
					"2,9.18=registry.example/lockstep-bind9:9.18-v0.1.0@sha256:" + strings.Repeat("0", 63) + "4"} {
				if strings.Count(text, "- --"+want+"\n") != 1 {
					t.Errorf("there is no --%s", want)
				}
			}
			if strings.Contains(text, "lockstep:dev") {
				t.Error("the dev cluster's image is left")
			}
			if n := strings.Count(text, "  replicas: "+replicas+"\n"); n != 4 {
				t.Errorf("%d Deployments have %s replicas, want 4", n, replicas)
			}
		})
	}
}

func TestDefinitions(t *testing.T) {
	r := renderer(t)
	out, err := r.Folder("crds")
	if err != nil {
		t.Fatal(err)
	}
	kinds := bytes.Count(out, []byte("\nkind: "))
	if definitions := bytes.Count(out, []byte("\nkind: CustomResourceDefinition\n")); definitions < 14 || definitions != kinds {
		t.Errorf("%d objects, of which %d are definitions", kinds, definitions)
	}
	if again, err := r.Folder("crds"); err != nil || !bytes.Equal(out, again) {
		t.Errorf("rendered differently the second time, error %v", err)
	}
}
