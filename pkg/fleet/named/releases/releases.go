package releases

import (
	"regexp"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Release is a release of BIND as spec.version has it, for example "9.20".
type Release string

const (
	// BIND918 is BIND 9.18, of Debian 12.
	BIND918 Release = "9.18"
	// BIND920 is BIND 9.20, of Debian 13.
	BIND920 Release = "9.20"
	// Default runs where no version is set.
	Default Release = v1beta1.DefaultVersion
)

// Supported are the releases that Lockstep is tested with, oldest first.
func Supported() []Release { return []Release{BIND918, BIND920} }

// IsSupported reports whether Lockstep is tested with a release.
func (r Release) IsSupported() bool { return slices.Contains(Supported(), r) }

var leadingRelease = regexp.MustCompile(`^9\.[0-9]+`)

// OfVersion returns the release of a version or of an image's tag that begins with it: 9.20 of "9.20.30-1" and of "9.20-v0.1.0". It is
// empty if the text begins with no release.
func OfVersion(text string) Release { return Release(leadingRelease.FindString(text)) }
