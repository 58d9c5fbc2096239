package mark

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// objectMetadata is what the marks of an object are made from. Reading no more than this means that an object with a bad
// specification is marked like any other, and refused for its specification alone.
type objectMetadata struct {
	metav1.ObjectMeta
	// declared are the RRsets that the specification declares, each as NAME/TYPE with the name as it is written there.
	declared []string
	// spec is the specification as it was sent. kube-apiserver writes equal values as equal text.
	spec json.RawMessage
}

// changesData reports whether an update may change what is in DNS: it changes the specification or the labels of an object that is not
// being deleted, or which namespaces' zones may take it.
func (m *objectMetadata) changesData(after *objectMetadata) bool {
	return !isDeleting(m, after) && (!bytes.Equal(m.spec, after.spec) || !maps.Equal(m.Labels, after.Labels) ||
		m.Annotations[v1beta1.AllowZoneNamespacesAnnotation] != after.Annotations[v1beta1.AllowZoneNamespacesAnnotation])
}

// isDeleting looks at both: an update may lack the deletion timestamp of the stored object, since kube-apiserver restores it after
// mutating webhooks (rest.BeforeUpdate), and refuses an update that adds one.
func isDeleting(before, after *objectMetadata) bool {
	return before.DeletionTimestamp != nil || after.DeletionTimestamp != nil
}

// parseMetadata reads the JSON of an object; names reads its specification. Names of fields have to be as they are defined, as
// everywhere in this package: encoding/json would take "Metadata" for metadata, kube-apiserver does not.
func parseMetadata(raw []byte, names func(spec []byte) []string) (*objectMetadata, error) {
	var object struct {
		Metadata *metav1.ObjectMeta `json:"metadata"`
		Spec     json.RawMessage    `json:"spec"`
	}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	if object.Metadata == nil {
		return nil, errors.New("it has no metadata")
	}
	return &objectMetadata{ObjectMeta: *object.Metadata, declared: names(object.Spec), spec: object.Spec}, nil
}

// recordNames reads the specifications of a record kind.
func recordNames(kind v1beta1.RecordKind) func(spec []byte) []string {
	return func(spec []byte) []string {
		var named struct {
			Name string `json:"name"`
			Type string `json:"type"`
		}
		if utiljson.Unmarshal(spec, &named) != nil || named.Name == "" {
			return nil
		}
		rrtype := cmp.Or(kind.Type, strings.ToUpper(named.Type))
		return []string{strings.ReplaceAll(named.Name, ",", `\044`) + "/" + rrtype}
	}
}

// endpointNames reads the specification of a DNSEndpoint. Names are canonical, and their commas escaped: the annotation
// is a list.
func endpointNames(spec []byte) []string {
	var endpoints v1alpha1.DNSEndpoint
	if utiljson.Unmarshal(spec, &endpoints.Spec) != nil {
		return nil
	}
	keys := source.PublishedKeys(&endpoints, ".")
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = strings.ReplaceAll(key.Name, ",", `\044`) + "/" + rrset.TypeName(key.Type)
	}
	return names
}
