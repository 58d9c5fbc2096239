package named

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// Labels of pods and of everything else that belongs to an instance.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelComponent = "app.kubernetes.io/component"
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// The older forms of the first two, which selectors of users still have.
	labelApp          = "app"
	labelInstanceName = "instance"

	// AppName is the value of LabelName on every BIND pod.
	AppName = "bind9"
	// ComponentServer is the value of LabelComponent on every BIND pod.
	ComponentServer = "dns-server"
	// PartOf is the value of LabelPartOf on instances and what they consist of: that of the API's group.
	PartOf = "bindy"
	// Manager is the value of LabelManagedBy on everything the controller makes.
	Manager = "lockstep"
)

// ServiceAccountName returns that of an instance's pods. Every instance has one of its own, so that each can be given what it
// alone needs.
func ServiceAccountName(instance string) string { return instance + "-bind9" }

// ChecksumAnnotation on a pod template is the digest of all that named reads only when it starts.
const ChecksumAnnotation = v1beta1.GroupName + "/config-checksum"

// Images are the images that run where neither cluster nor instance names one.
type Images struct {
	Bind9   releases.Images
	Bindcar string
}

// SidecarImage returns the image of sidecars that goes with an image of Lockstep: NAME-sidecar, with the same tag. Two images have no digest
// in common.
func SidecarImage(lockstep string) (string, error) {
	image, _, digest := strings.Cut(lockstep, "@")
	name, tag, tagged := strings.Cut(path.Base(image), ":")
	if digest && !tagged {
		return "", fmt.Errorf("image %s has a digest and no tag, by which that of sidecars could be found", lockstep)
	}
	sidecar := path.Join(path.Dir(image), name+"-sidecar")
	if tagged {
		sidecar += ":" + tag
	}
	return sidecar, nil
}

// Workload is all that the Kubernetes objects of an instance are made from.
type Workload struct {
	Instance *v1beta1.Bind9Instance
	// Cluster is the specification of the instance's cluster, the zero value for a standalone instance.
	Cluster v1beta1.Bind9ClusterSpec
	Images  Images
	// Replacements have the content of the files of ReplacedFiles. Pods are replaced when it changes.
	Replacements map[string]string
}

func (w Workload) role() v1beta1.ServerRole { return w.Instance.Spec.Role.Normalize() }

// roleConfig returns the cluster's configuration for the instance's role.
func (w Workload) roleConfig() v1beta1.RoleConfig {
	if w.role() == v1beta1.RolePrimary {
		return ptr.Deref(w.Cluster.Primary, v1beta1.RoleConfig{})
	}
	return ptr.Deref(w.Cluster.Secondary, v1beta1.RoleConfig{})
}

// Config returns the configuration that the instance's servers run with.
func (w Workload) Config() Config {
	return Config{
		Layout:  PodLayout(),
		Release: w.release(),
		Role:    w.role(),
		Options: w.mergedOptions(),
		ACLs:    w.Cluster.ACLs,
	}
}

// mergedOptions returns the cluster's, those of the instance's role in it, and the instance's own: the later goes before the
// earlier.
func (w Workload) mergedOptions() v1beta1.Bind9Config {
	role := MergeOptions(w.Cluster.Global, &v1beta1.Bind9Config{AllowTransfer: w.roleConfig().AllowTransfer})
	return MergeOptions(&role, w.Instance.Spec.Config)
}

// MaxRecordsPerType is how many records of one name and type the servers take.
func (w Workload) MaxRecordsPerType() int32 {
	return ptr.Deref(w.mergedOptions().MaxRecordsPerType, v1beta1.DefaultMaxRecordsPerType)
}

// bindcarConfig returns the sidecar's configuration: each setting is the instance's, else the one among its options, else the
// cluster's.
func (w Workload) bindcarConfig() v1beta1.BindcarConfig {
	return ptr.Deref(overlay(w.mergedOptions().BindcarConfig, w.Instance.Spec.BindcarConfig), v1beta1.BindcarConfig{})
}

func (w Workload) configMapRefs() v1beta1.ConfigMapRefs {
	return ptr.Deref(cmp.Or(w.Instance.Spec.ConfigMapRefs, w.Cluster.ConfigMapRefs), v1beta1.ConfigMapRefs{})
}

// ReplacedFiles returns the configuration files that are a user's: the name of the ConfigMap for each.
func (w Workload) ReplacedFiles() map[string]string {
	refs := w.configMapRefs()
	files := map[string]string{MainFile: refs.NamedConf, OptionsFile: refs.NamedConfOptions, ZonesFile: refs.NamedConfZones}
	maps.DeleteFunc(files, func(_, configMap string) bool { return configMap == "" })
	return files
}

func (w Workload) imageConfig() v1beta1.ImageConfig {
	return ptr.Deref(cmp.Or(w.Instance.Spec.Image, w.Cluster.Image), v1beta1.ImageConfig{})
}

// bind9Image returns the image asked for, else the default one with the tag of the version asked for.
func (w Workload) bind9Image() string {
	if image := w.imageConfig().Image; image != "" {
		return image
	}
	return w.Images.Bind9.Of(w.version())
}

// release returns the release of BIND that runs, as far as a tag or the specification says so; it is empty if neither does.
func (w Workload) release() releases.Release {
	if image := w.imageConfig().Image; image != "" {
		return releases.OfImage(image)
	}
	return cmp.Or(releases.OfImage(w.bind9Image()), releases.OfVersion(w.version()))
}

// version returns the release of BIND that is asked for: the instance's, else the cluster's.
func (w Workload) version() string {
	return cmp.Or(w.Instance.Spec.Version, w.Cluster.Version)
}

// ImageAdvice is what to do if named's image cannot be pulled that comes of a version; empty if it comes of an image's name.
func (w Workload) ImageAdvice() string {
	image, version := w.bind9Image(), w.version()
	if w.imageConfig().Image != "" || w.Images.Bind9.Known(version) {
		return ""
	}
	of := "Bind9Instance " + w.Instance.Name
	if owner := metav1.GetControllerOf(w.Instance); owner != nil {
		of = owner.Kind + " " + owner.Name
	} else if w.Instance.Spec.Version != version {
		of = "cluster " + w.Instance.Spec.ClusterRef
	}
	return fmt.Sprintf("spec.version %q of %s needs the image %s, which cannot be pulled: push it, or add image: {image: …} to the spec, with an image of BIND %s, or set version: %q, for which there is %s",
		version, of, image, version, cmp.Or(releases.OfImage(w.Images.Bind9.Standard()), releases.Default), w.Images.Bind9.Standard())
}

// bindcarImage returns the sidecar's image. The public sidecar cannot share a key that never leaves the pod, so ours stands
// in for it; see Ignored.
func (w Workload) bindcarImage() string {
	if image := w.bindcarConfig().Image; image != "" && !isPublicSidecar(image) {
		return image
	}
	return w.Images.Bindcar
}

func isPublicSidecar(image string) bool {
	name, _, _ := strings.Cut(path.Base(image), ":")
	name, _, _ = strings.Cut(name, "@")
	return name == "bindcar"
}

// Ignored returns the fields of the specification that have no effect, each with the reason.
func (w Workload) Ignored() []string {
	var ignored []string
	note := func(set bool, text string) {
		if set {
			ignored = append(ignored, text)
		}
	}
	config := w.Config()
	signs := ptr.Deref(signingConfig(config.Options), v1beta1.DNSSECSigningConfig{})
	note(isPublicSidecar(w.bindcarConfig().Image), "bindcarConfig.image: the sidecar of this operator runs in place of the public one")
	note(w.bindcarConfig().TLS != nil, "bindcarConfig.tls: the sidecar's API always has mutual TLS, with certificates that the fleet manager issues")
	note(signs.KeysFrom != nil || !ptr.Deref(signs.AutoGenerate, true), "dnssec.signing.keysFrom, autoGenerate: named makes the keys, unless the zone's Secret of keys has them")
	note(len(w.Instance.Spec.PrimaryServers) > 0, "primaryServers: a secondary transfers each zone from the primaries of that zone")
	w.ignoredKeys(note)
	return ignored
}

// keyAlgorithm returns that of the pod's own rndc key.
func (w Workload) keyAlgorithm() string {
	key := ptr.Deref(w.effectiveKey(), v1beta1.RNDCKeyConfig{})
	if key.Algorithm == "" {
		return rndc.DefaultAlgorithm
	}
	return string(key.Algorithm)
}

// SelectorLabels choose the pods of an instance, and not those that Bindy made for one of that name: they have all labels but the last.
func SelectorLabels(instance string) map[string]string {
	return map[string]string{LabelName: AppName, serving.LabelInstance: instance, LabelManagedBy: Manager}
}

// Labels returns those of every object of the instance.
func (w Workload) Labels() map[string]string {
	labels := SelectorLabels(w.Instance.Name)
	maps.Copy(labels, map[string]string{
		labelApp:               AppName,
		labelInstanceName:      w.Instance.Name,
		LabelComponent:         ComponentServer,
		LabelPartOf:            PartOf,
		v1beta1.RoleLabel:      string(w.role()),
		v1beta1.ManagedByLabel: "Bind9Instance",
	})
	if w.Instance.Spec.ClusterRef != "" {
		labels[v1beta1.ClusterLabel] = w.Instance.Spec.ClusterRef
	}
	return labels
}

func (w Workload) ownerReference() *metav1ac.OwnerReferenceApplyConfiguration {
	return OwnerReference(v1beta1.GroupVersion.WithKind("Bind9Instance").GroupVersion().String(), "Bind9Instance", w.Instance)
}

// OwnerReference makes owner the controller of an object that is applied.
func OwnerReference(apiVersion, kind string, owner metav1.Object) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(apiVersion).WithKind(kind).WithName(owner.GetName()).
		WithUID(owner.GetUID()).WithController(true).WithBlockOwnerDeletion(true)
}

// ConfigMap holds the rendered configuration files. The error wraps ErrConfig.
func (w Workload) ConfigMap() (*corev1ac.ConfigMapApplyConfiguration, error) {
	files, err := Render(w.Config())
	if err != nil {
		return nil, err
	}
	return corev1ac.ConfigMap(w.Instance.Name+"-config", w.Instance.Namespace).
		WithLabels(w.Labels()).WithOwnerReferences(w.ownerReference()).WithData(files), nil
}

// PodName returns the name of an instance's pod with the given ordinal.
func PodName(instance string, ordinal int) string { return fmt.Sprintf("%s-%d", instance, ordinal) }

// toApply turns an API value into its apply configuration; the two have the same JSON form.
func toApply[T any](value any) (*T, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal(text, out)
}

func pullSecrets(names []string) []*corev1ac.LocalObjectReferenceApplyConfiguration {
	var out []*corev1ac.LocalObjectReferenceApplyConfiguration
	for _, name := range names {
		out = append(out, corev1ac.LocalObjectReference().WithName(name))
	}
	return out
}

// ServiceAccount returns what the instance's sidecars are to Kubernetes. What it may do is granted elsewhere.
func (w Workload) ServiceAccount() *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(ServiceAccountName(w.Instance.Name), w.Instance.Namespace).
		WithLabels(w.Labels()).WithOwnerReferences(w.ownerReference()).WithAutomountServiceAccountToken(false)
}

func pullPolicy(policy corev1.PullPolicy) corev1.PullPolicy {
	return cmp.Or(policy, corev1.PullIfNotPresent)
}
