package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fillerLabel is the label of the ConfigMaps, which the one that every namespace has lacks.
const fillerLabel = "bench-filler"

// createConfigMaps makes as many ConfigMaps as there are records, each as long as the SyncStatus of one and with its text: a
// text that packs as well. Without quotes, which a string cannot have in JSON without more.
func (b *readBench) createConfigMaps(ctx context.Context) error {
	maps := make([]client.Object, *records)
	for i := range maps {
		maps[i] = b.newConfigMap(fmt.Sprintf("%s-%d", object, i), i)
	}
	creation, err := b.CreateAll(ctx, maps)
	fmt.Println("ConfigMaps:", creation)
	return err
}

// configMapOverhead is about what a ConfigMap has besides its data, managed fields included.
const configMapOverhead = 420

func (b *readBench) newConfigMap(name string, i int) *corev1.ConfigMap {
	text := strings.ReplaceAll(string(b.statusTexts[i%len(b.statusTexts)]), `"`, "'")
	return &corev1.ConfigMap{
		ObjectMeta: b.ObjectMeta(name, map[string]string{fillerLabel: ""}),
		Data:       map[string]string{"text": text[:max(1, len(text)-configMapOverhead)]},
	}
}
