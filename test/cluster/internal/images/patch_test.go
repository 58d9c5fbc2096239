package images

import "testing"

func TestVersionTag(t *testing.T) {
	for version, want := range map[string]string{"1:9.20.30-1~deb13u1": "9.20.30-1-deb13u1", "9.18.49-1+b2": "9.18.49-1-b2"} {
		if got := versionTag(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}
