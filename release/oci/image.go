package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Media types of the OCI image specification, version 1.
const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar"
	mediaGzip     = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Image is a container image of one layer.
type Image struct {
	// Name is the full reference, such as docker.io/library/lockstep:dev.
	Name string
	// Files are the root file system.
	Files []File
	// Config is how a container of it runs.
	Config Config
	// Inputs, if set, names what the image was made of. Inspect returns it.
	Inputs string
	// Arch is the architecture as Go names it.
	Arch string
	// Created is when the image was made, which has nothing to do with when
	// this runs. The default is 1970.
	Created time.Time
	// Compress makes the layer small, for images that are transferred. It
	// depends on the version of Go how small.
	Compress bool
}

// Config is the part of an image's configuration that we use.
type Config struct {
	User         string              `json:"User,omitempty"`
	ExposedPorts map[string]struct{} `json:"ExposedPorts,omitempty"`
	Env          []string            `json:"Env,omitempty"`
	Entrypoint   []string            `json:"Entrypoint,omitempty"`
	Cmd          []string            `json:"Cmd,omitempty"`
	WorkingDir   string              `json:"WorkingDir,omitempty"`
	Labels       map[string]string   `json:"Labels,omitempty"`
}

type contentDescriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type imageManifest struct {
	SchemaVersion int                 `json:"schemaVersion"`
	MediaType     string              `json:"mediaType"`
	Config        contentDescriptor   `json:"config"`
	Layers        []contentDescriptor `json:"layers"`
}

type imageIndex struct {
	SchemaVersion int                 `json:"schemaVersion"`
	MediaType     string              `json:"mediaType"`
	Manifests     []contentDescriptor `json:"manifests"`
}

func newIndex(manifests ...contentDescriptor) imageIndex {
	return imageIndex{SchemaVersion: 2, MediaType: mediaIndex, Manifests: manifests}
}

// contentBlob is a piece of an image, addressed by what it holds.
type contentBlob struct {
	contentDescriptor
	body []byte
}

func newBlob(media string, body []byte) contentBlob {
	sum := sha256.Sum256(body)
	return contentBlob{contentDescriptor{MediaType: media, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: len(body)}, body}
}

func (b contentBlob) blobPath() string { return "blobs/sha256/" + b.Digest[len("sha256:"):] }

// makeBlobs returns the image's layer, configuration and manifest.
func (img Image) makeBlobs() (layer, config, manifest contentBlob, err error) {
	body, err := layerTar(img.Files)
	if err != nil {
		return layer, config, manifest, fmt.Errorf("packing the files of %s: %w", img.Name, err)
	}
	layer = newBlob(mediaLayer, body)
	diffID := layer.Digest // of the layer before compression
	if img.Compress {
		if body, err = compress(body); err != nil {
			return layer, config, manifest, err
		}
		layer = newBlob(mediaGzip, body)
	}
	if body, err = json.Marshal(img.makeConfig(diffID)); err != nil {
		return layer, config, manifest, err
	}
	config = newBlob(mediaConfig, body)
	body, err = json.Marshal(img.makeManifest(config, layer))
	return layer, config, newBlob(mediaManifest, body), err
}

func (img Image) makeConfig(diffID string) any {
	type rootfs struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	created := img.Created
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	return struct {
		Created      string `json:"created"`
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
		Config       Config `json:"config"`
		RootFS       rootfs `json:"rootfs"`
	}{
		Created: created.UTC().Format(time.RFC3339), Architecture: img.Arch, OS: "linux", Config: img.Config,
		RootFS: rootfs{Type: "layers", DiffIDs: []string{diffID}},
	}
}

func (img Image) makeManifest(config, layer contentBlob) imageManifest {
	return imageManifest{SchemaVersion: 2, MediaType: mediaManifest,
		Config: config.contentDescriptor, Layers: []contentDescriptor{layer.contentDescriptor}}
}
