package releases

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Images are the images of named, of servers that name none. The zero value has none.
type Images struct {
	// standard is the image of the default release.
	standard string
	// others are the images of other releases.
	others map[Release]string
}

// ParseImages reads "IMAGE,9.18=IMAGE": the image of the default release, and those of others.
func ParseImages(text string) (Images, error) {
	standard, rest, more := strings.Cut(text, ",")
	images := Images{standard: standard, others: map[Release]string{}}
	if standard == "" || strings.Contains(standard, "=") {
		return images, fmt.Errorf("%q does not begin with an image, of servers without a version", text)
	}
	for more {
		var one string
		one, rest, more = strings.Cut(rest, ",")
		version, image, ok := strings.Cut(one, "=")
		release := OfVersion(version)
		switch {
		case !ok || image == "" || release == "" || string(release) != version:
			return images, fmt.Errorf("%q is not RELEASE=IMAGE, for example 9.20=lockstep-bind9:9.20", one)
		case images.others[release] != "":
			return images, fmt.Errorf("release %s has two images", release)
		}
		images.others[release] = image
	}
	return images, nil
}

// Standard is the image of servers without a version.
func (i Images) Standard() string { return i.standard }

// Known reports whether the image of a version is one of those that were named, not made of another one's name.
func (i Images) Known(version string) bool {
	image := i.Of(version)
	return image == i.standard || slices.Contains(slices.Collect(maps.Values(i.others)), image)
}

// Of returns the image of a version: the one that was named for it, else the standard one with the version as its tag. A standard image
// with a digest is that of all versions that have none: no tag decides beside a digest.
func (i Images) Of(version string) string {
	if image := i.others[Release(version)]; image != "" {
		return image
	}
	name, tag := splitTag(i.standard)
	if version == "" || tag == "" || strings.Contains(i.standard, "@") || i.isOfStandard(Release(version), tag) {
		return i.standard
	}
	return name + ":" + version
}

// isOfStandard reports whether the standard image is that of a release: it begins its tag, or the tag says nothing of any and Lockstep
// supports it.
func (i Images) isOfStandard(release Release, tag string) bool {
	of := OfVersion(tag)
	return of == release || of == "" && release.IsSupported()
}

// OfImage returns the release that an image's tag begins with; it is empty if it begins with none.
func OfImage(image string) Release {
	_, tag := splitTag(image)
	return OfVersion(tag)
}

// splitTag splits an image, without its digest, into its name and its tag, which may be missing.
func splitTag(image string) (name, tag string) {
	image, _, _ = strings.Cut(image, "@")
	last, tag, _ := strings.Cut(path.Base(image), ":")
	return strings.TrimSuffix(image, path.Base(image)) + last, tag
}
