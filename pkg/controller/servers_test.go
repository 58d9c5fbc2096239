package controller

import (
	"strings"
	"testing"
)

// Sidecars run the image beside Lockstep's own, or the one that a flag names.
func TestImageOfSidecars(t *testing.T) {
	for name, c := range map[string]struct {
		own, flag, want string
	}{
		"a tag":                   {own: "lockstep:dev", want: "lockstep-sidecar:dev"},
		"a registry":              {own: "registry.example:5000/dns/lockstep:v1.2.3", want: "registry.example:5000/dns/lockstep-sidecar:v1.2.3"},
		"no tag":                  {own: "registry.example:5000/lockstep", want: "registry.example:5000/lockstep-sidecar"},
		"tag and digest":          {own: "lockstep:v1@sha256:00", want: "lockstep-sidecar:v1"},
		"a digest":                {own: "lockstep@sha256:00"},
		"a flag":                  {own: "lockstep@sha256:00", flag: "mirror/sidecar@sha256:01", want: "mirror/sidecar@sha256:01"},
		"an older overlay's flag": {own: "lockstep:dev", flag: "lockstep:v1", want: "lockstep:v1"},
	} {
		o := NewFleetOptions(nil)
		o.Namespace, o.Image, o.BindcarImage = "lockstep-system", c.own, c.flag
		err := o.Validate()
		if images, _ := o.images(); images.Bindcar != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, images.Bindcar, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "--bindcar-image") {
			t.Errorf("%s: %v does not say what to set", name, err)
		}
	}
}
