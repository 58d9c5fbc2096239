package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// filler is the label of the ConfigMaps, which tells them from the one that every namespace has.
const filler = "bench-filler"

// makeConfigMaps makes as many ConfigMaps as there are records, each as long as a SyncStatus.
func (b *bench) makeConfigMaps(ctx context.Context) error {
	maps := make([]client.Object, *records)
	for i := range maps {
		maps[i] = b.configMap(fmt.Sprintf("%s-%d", object, i))
	}
	creation, err := b.Create(ctx, maps)
	fmt.Println("ConfigMaps:", creation)
	return err
}

// frame is about what a ConfigMap has besides its data, managed fields included.
const frame = 420

func (b *bench) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: b.Meta(name, map[string]string{filler: ""}),
		Data:       map[string]string{"text": strings.Repeat("x", max(1, b.size-frame))},
	}
}
