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

// makeConfigMaps makes as many ConfigMaps as there are records, each as long as the SyncStatus of one and with its text: a
// text that packs as well. Without quotes, which a string cannot have in JSON without more.
func (b *bench) makeConfigMaps(ctx context.Context) error {
	maps := make([]client.Object, *records)
	for i := range maps {
		maps[i] = b.configMap(fmt.Sprintf("%s-%d", object, i), i)
	}
	creation, err := b.Create(ctx, maps)
	fmt.Println("ConfigMaps:", creation)
	return err
}

// frame is about what a ConfigMap has besides its data, managed fields included.
const frame = 420

func (b *bench) configMap(name string, i int) *corev1.ConfigMap {
	text := strings.ReplaceAll(string(b.texts[i%len(b.texts)]), `"`, "'")
	return &corev1.ConfigMap{
		ObjectMeta: b.Meta(name, map[string]string{filler: ""}),
		Data:       map[string]string{"text": text[:max(1, len(text)-frame)]},
	}
}
