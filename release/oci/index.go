package oci

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Digests are those of an image of several architectures.
type Digests struct {
	Index     string            // of all of them
	Manifests map[string]string // of each, by architecture
}

// WriteIndex writes one image for several architectures, which have one name, as the archive of an OCI image layout. A container
// runtime takes the one of its machine.
func WriteIndex(file string, images ...Image) (Digests, error) {
	digests := Digests{Manifests: map[string]string{}}
	if len(images) == 0 {
		return digests, errors.New("an index of no image")
	}
	name := images[0].Name
	var manifests []contentDescriptor
	var blobs []contentBlob
	for _, img := range images {
		if img.Name != name || digests.Manifests[img.Arch] != "" {
			return digests, fmt.Errorf("image %s for %s cannot be in the index of %s", img.Name, img.Arch, name)
		}
		layer, config, manifest, err := img.makeBlobs()
		if err != nil {
			return digests, err
		}
		manifest.Platform = &imagePlatform{Architecture: img.Arch, OS: "linux"}
		digests.Manifests[img.Arch] = manifest.Digest
		manifests = append(manifests, manifest.contentDescriptor)
		blobs = append(blobs, manifest, config, layer)
	}
	body, err := json.Marshal(newIndex(manifests...))
	if err != nil {
		return digests, err
	}
	index := newBlob(mediaIndex, body)
	digests.Index = index.Digest
	err = replaceFile(file, func(w io.Writer) error { return writeIndexArchive(w, name, index, blobs) })
	if err != nil {
		return digests, fmt.Errorf("writing image %s: %w", name, err)
	}
	return digests, nil
}

func writeIndexArchive(w io.Writer, name string, index contentBlob, blobs []contentBlob) error {
	head := index.contentDescriptor
	head.Annotations = map[string]string{annotationName: name, annotationTag: referenceTag(name)}
	out := &archiveWriter{w: tar.NewWriter(w)}
	out.writeLayout(head)
	written := map[string]bool{}
	for _, b := range append([]contentBlob{index}, blobs...) {
		if !written[b.Digest] {
			written[b.Digest] = true
			out.writeFile(b.blobPath(), b.body)
		}
	}
	return errors.Join(out.err, out.w.Close())
}
