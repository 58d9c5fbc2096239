package zoneimport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// maxFileObjects is how many objects a file of a folder has: kubectl holds all of a file in memory.
const maxFileObjects = 1000

// writeStream writes objects as one stream of YAML documents.
func writeStream(w io.Writer, objects []source.Object) error {
	out := bufio.NewWriterSize(w, 1<<16)
	first := true
	for some := range slices.Chunk(objects, encodedObjects) {
		if !first {
			_, _ = out.WriteString("---\n")
		}
		first = false
		if err := encodeObjects(out, some); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return nil
}

// encodedObjects is how many objects one encoder takes: it keeps what it has encoded, and is expensive to make.
const encodedObjects = 50

func encodeObjects(w io.Writer, objects []source.Object) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	for _, object := range objects {
		fields, err := manifestFields(object)
		if err == nil {
			err = encoder.Encode(fields)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", source.KeyOf(object), err)
		}
	}
	return encoder.Close()
}

// manifestFields returns an object's fields without those that a server adds.
func manifestFields(object source.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return fields, err
}

// writeFolder writes objects into a new or empty folder: a file for each kind, or several for many objects.
func writeFolder(folder string, objects []source.Object) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // manifests are no secrets
		return fmt.Errorf("--output: %w", err)
	}
	if entries, err := os.ReadDir(folder); err != nil {
		return fmt.Errorf("--output: %w", err)
	} else if len(entries) > 0 {
		return fmt.Errorf("--output=%s: the folder is not empty; name a new one, so that no manifest of an earlier import stays among these", folder)
	}
	var kinds []string
	byKind := map[string][]source.Object{}
	for _, object := range objects {
		kind := strings.ToLower(object.GetObjectKind().GroupVersionKind().Kind)
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], object)
	}
	for i, kind := range kinds {
		name := kind
		if kind == "dnszone" && i > 0 {
			name = "zone" // kubectl takes files in the order of their names.
		}
		if err := writeKind(folder, name, byKind[kind]); err != nil {
			return err
		}
	}
	return nil
}

func writeKind(folder, name string, objects []source.Object) error {
	if len(objects) <= maxFileObjects {
		return writeFile(filepath.Join(folder, name+".yaml"), objects)
	}
	for number := 1; len(objects) > 0; number++ {
		n := min(len(objects), maxFileObjects)
		if err := writeFile(filepath.Join(folder, fmt.Sprintf("%s-%03d.yaml", name, number)), objects[:n]); err != nil {
			return err
		}
		objects = objects[n:]
	}
	return nil
}

func writeFile(name string, objects []source.Object) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // manifests are no secrets
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return errors.Join(writeStream(file, objects), file.Close())
}
