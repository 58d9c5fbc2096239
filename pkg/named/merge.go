package named

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// overlay returns base with every field that over sets in place of its own. Either may be nil, and so is the result when both
// are.
func overlay[T any](base, over *T) *T {
	if base == nil || over == nil {
		return firstNonNil(over, base)
	}
	fields := fieldsOf(base)
	maps.Copy(fields, fieldsOf(over))
	text, err := json.Marshal(fields)
	merged := new(T)
	if err == nil {
		err = json.Unmarshal(text, merged)
	}
	if err != nil {
		panic(fmt.Sprintf("overlaying %T: %v", base, err)) // Both are values of the API, which has them in this form.
	}
	return merged
}

// fieldsOf returns the JSON form of an API value, by field; fields that are not set are left out.
func fieldsOf(value any) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(fmt.Sprintf("fields of %T: %v", value, err))
	}
	return fields
}

// firstSlice returns the first list that has anything in it.
func firstSlice[T any](lists ...[]T) []T {
	for _, list := range lists {
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// checkDistinctMounts refuses volumes of the same name and mounts at the same place, which server-side apply would not report in
// words that a user understands. claimed says that the volume of a claim is there beside those listed.
func checkDistinctMounts(volumes []*corev1ac.VolumeApplyConfiguration, claimed bool, containers ...*corev1ac.ContainerApplyConfiguration) error {
	names := map[string]bool{}
	if claimed {
		names[volumeCache] = true
	}
	for _, v := range volumes {
		if names[*v.Name] {
			return fmt.Errorf("volumes: there is another volume %q; config, cache, run, kube-api-access and bindcar-tls are taken", *v.Name)
		}
		names[*v.Name] = true
	}
	for _, c := range containers {
		paths := map[string]bool{}
		for _, m := range c.VolumeMounts {
			switch {
			case !names[*m.Name]:
				return fmt.Errorf("volumeMounts: container %s mounts volume %q, which there is not", *c.Name, *m.Name)
			case paths[*m.MountPath]:
				return fmt.Errorf("volumeMounts: container %s has another mount at %s", *c.Name, *m.MountPath)
			}
			paths[*m.MountPath] = true
		}
	}
	return nil
}
