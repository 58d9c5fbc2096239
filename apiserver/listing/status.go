package listing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// What follows has the fields of package sync/v1alpha1 in the order of their types. TestEveryField fails if one is missing.

func (t *text) addStatus(s *syncv1.SyncStatus) {
	t.begin()
	optionalString(t, "kind", s.Kind)
	optionalString(t, "apiVersion", s.APIVersion)
	t.key("metadata")
	t.addMeta(&s.ObjectMeta)
	t.key("objectRef")
	t.addReference(&s.ObjectRef)
	optionalString(t, "zone", s.Zone)
	t.key("status")
	t.addVerdict(&s.Status)
	optionalList(t, "rrsets", s.RRsets, (*text).addRRset)
	optionalList(t, "servers", s.Servers, (*text).addServer)
	optionalList(t, "nameServers", s.NameServers, (*text).addNameServer)
	optionalList(t, "paths", s.Paths, (*text).addPath)
	optionalList(t, "chain", s.Chain, (*text).addLink)
	t.key("summary")
	t.addSummary(&s.Summary)
	optionalMicroTime(t, "observedAt", s.ObservedAt)
	optionalTime(t, "cachesExpireAt", s.CachesExpireAt)
	t.end()
}

// addMeta adds metadata. A SyncStatus has a few of its fields.
func (t *text) addMeta(m *metav1.ObjectMeta) {
	if m.GenerateName != "" || m.SelfLink != "" || m.DeletionTimestamp != nil || //nolint:staticcheck // encoding/json writes it
		m.DeletionGracePeriodSeconds != nil || len(m.Annotations) > 0 || len(m.Finalizers) > 0 || len(m.ManagedFields) > 0 {
		t.addMarshaled(m)
		return
	}
	t.begin()
	optionalString(t, "name", m.Name)
	optionalString(t, "namespace", m.Namespace)
	optionalString(t, "uid", m.UID)
	optionalString(t, "resourceVersion", m.ResourceVersion)
	optionalInt(t, "generation", m.Generation)
	if !m.CreationTimestamp.IsZero() {
		optionalTime(t, "creationTimestamp", &m.CreationTimestamp)
	}
	optionalMap(t, "labels", m.Labels)
	optionalList(t, "ownerReferences", m.OwnerReferences, (*text).addOwner)
	t.end()
}

func (t *text) addOwner(o *metav1.OwnerReference) {
	if o.Controller != nil || o.BlockOwnerDeletion != nil {
		t.addMarshaled(o)
		return
	}
	t.begin()
	stringField(t, "apiVersion", o.APIVersion)
	stringField(t, "kind", o.Kind)
	stringField(t, "name", o.Name)
	stringField(t, "uid", o.UID)
	t.end()
}

func (t *text) addReference(r *syncv1.ObjectReference) {
	t.begin()
	stringField(t, "apiVersion", r.APIVersion)
	stringField(t, "kind", r.Kind)
	stringField(t, "namespace", r.Namespace)
	stringField(t, "name", r.Name)
	stringField(t, "uid", r.UID)
	optionalInt(t, "generation", r.Generation)
	t.end()
}

func (t *text) addVerdict(v *syncv1.SyncStatusStatus) {
	t.begin()
	stringField(t, "phase", v.Phase)
	boolField(t, "inSync", v.InSync)
	optionalString(t, "failureReason", v.FailureReason)
	optionalString(t, "failureMessage", v.FailureMessage)
	optionalList(t, "conditions", v.Conditions, (*text).addCondition)
	t.end()
}

func (t *text) addCondition(c *metav1.Condition) {
	t.begin()
	stringField(t, "type", c.Type)
	stringField(t, "status", c.Status)
	optionalInt(t, "observedGeneration", c.ObservedGeneration)
	t.key("lastTransitionTime")
	t.addTime(c.LastTransitionTime.Time, time.RFC3339)
	stringField(t, "reason", c.Reason)
	stringField(t, "message", c.Message)
	t.end()
}

func (t *text) addRRset(r *syncv1.RRset) {
	t.begin()
	stringField(t, "name", r.Name)
	stringField(t, "type", r.Type)
	optionalIntAt(t, "ttl", r.TTL)
	optionalStrings(t, "rdata", r.Rdata)
	optionalInt(t, "omitted", r.Omitted)
	t.end()
}

func (t *text) addServer(s *syncv1.ServerStatus) {
	t.begin()
	stringField(t, "instance", s.Instance)
	optionalString(t, "namespace", s.Namespace)
	optionalString(t, "provider", s.Provider)
	stringField(t, "pod", s.Pod)
	optionalString(t, "zone", s.Zone)
	optionalString(t, "readBy", s.ReadBy)
	optionalString(t, "address", s.Address)
	stringField(t, "role", s.Role)
	optionalString(t, "podPhase", s.PodPhase)
	boolField(t, "podReady", s.PodReady)
	stringField(t, "state", s.State)
	optionalString(t, "security", s.Security)
	optionalString(t, "securityCause", s.SecurityCause)
	optionalTime(t, "signaturesExpireAt", s.SignaturesExpireAt)
	optionalInts(t, "keyTags", s.KeyTags)
	optionalIntAt(t, "serial", s.Serial)
	optionalIntAt(t, "serialLag", s.SerialLag)
	optionalMicroTime(t, "behindSince", s.BehindSince)
	optionalTime(t, "expiresAt", s.ExpiresAt)
	optionalString(t, "rcode", s.Rcode)
	boolField(t, "authoritative", s.Authoritative)
	optionalList(t, "observed", s.Observed, (*text).addRRset)
	optionalString(t, "shadowedBy", s.ShadowedBy)
	if s.Records != nil {
		t.key("records")
		t.addMarshaled(s.Records)
	}
	if s.Zones != nil {
		t.key("zones")
		t.addMarshaled(s.Zones)
	}
	optionalInt(t, "restarts", s.Restarts)
	optionalString(t, "version", s.Version)
	optionalString(t, "sidecar", s.Sidecar)
	if s.RTT != nil {
		stringField(t, "rtt", s.RTT.Duration.String())
	}
	optionalMicroTime(t, "observedAt", s.ObservedAt)
	optionalString(t, "message", s.Message)
	t.end()
}

func (t *text) addNameServer(n *syncv1.NameServer) { t.addMarshaled(n) }

func (t *text) addPath(p *syncv1.Path) {
	t.begin()
	stringField(t, "type", p.Type)
	optionalString(t, "vantage", p.Vantage)
	stringField(t, "instance", p.Instance)
	optionalString(t, "namespace", p.Namespace)
	optionalString(t, "provider", p.Provider)
	optionalStrings(t, "nameServers", p.NameServers)
	stringField(t, "address", p.Address)
	stringField(t, "protocol", p.Protocol)
	stringField(t, "state", p.State)
	optionalString(t, "server", p.Server)
	optionalIntAt(t, "serial", p.Serial)
	optionalString(t, "rcode", p.Rcode)
	if p.RTT != nil {
		stringField(t, "rtt", p.RTT.Duration.String())
	}
	optionalMicroTime(t, "observedAt", p.ObservedAt)
	optionalString(t, "message", p.Message)
	t.end()
}

func (t *text) addLink(l *syncv1.ChainLink) { t.addMarshaled(l) }

func (t *text) addSummary(s *syncv1.Summary) {
	t.begin()
	intField(t, "servers", s.Servers)
	intField(t, "inSync", s.InSync)
	intField(t, "unreachable", s.Unreachable)
	optionalInt(t, "records", s.Records)
	optionalInt(t, "recordsOutOfSync", s.RecordsOutOfSync)
	t.end()
}
