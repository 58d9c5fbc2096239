package integration

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Every operator of a selector, and several selectors, of which one is enough.
func writeExpressions(f *fixture) {
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	ours := expression("zone", metav1.LabelSelectorOpIn, "expressions")
	labels := map[string]map[string]string{
		"plain": {}, "blue": {"color": "blue"}, "red": {"color": "red"}, "tall": {"size": "tall"}, "bluetall": {"color": "blue", "size": "tall"},
	}
	for name, extra := range labels {
		record := f.aRecord("expressions-"+name, name, "192.0.2.1")
		maps.Copy(record.Labels, extra)
		f.create(record)
	}
	for _, c := range []struct {
		name string
		any  [][]metav1.LabelSelectorRequirement
		want []string
	}{
		{"In", [][]metav1.LabelSelectorRequirement{{ours, expression("color", metav1.LabelSelectorOpIn, "blue", "green")}}, []string{"blue", "bluetall"}},
		{"NotIn", [][]metav1.LabelSelectorRequirement{{ours, expression("color", metav1.LabelSelectorOpNotIn, "blue")}}, []string{"plain", "red", "tall"}},
		{"Exists", [][]metav1.LabelSelectorRequirement{{ours, expression("size", metav1.LabelSelectorOpExists)}}, []string{"tall", "bluetall"}},
		{"DoesNotExist", [][]metav1.LabelSelectorRequirement{{ours, expression("color", metav1.LabelSelectorOpDoesNotExist)}}, []string{"plain", "tall"}},
		{"one of several", [][]metav1.LabelSelectorRequirement{
			{ours, expression("color", metav1.LabelSelectorOpIn, "red")}, {ours, expression("size", metav1.LabelSelectorOpIn, "tall")}}, []string{"red", "tall", "bluetall"}},
	} {
		f.runSub(c.name, func(f *fixture) {
			change(f, zone, func(z *v1beta1.DNSZone) {
				z.Spec.RecordsFrom = nil
				for _, all := range c.any {
					z.Spec.RecordsFrom = append(z.Spec.RecordsFrom, v1beta1.RecordSource{Selector: metav1.LabelSelector{MatchExpressions: all}})
				}
			})
			var present, absent []string
			for name := range labels {
				if slices.Contains(c.want, name) {
					present = append(present, name+".expressions.example. 3600 A 192.0.2.1")
				} else {
					absent = append(absent, name+".expressions.example.")
				}
			}
			f.waitSameContent(kube.Settle, passesBoth(contains(present...), containsNo(absent...)))
		})
	}
}

// A record that two zones select belongs to the older one, and moves to the other when that one is gone.
func writeTwoZonesSelect(f *fixture) {
	f.untilYounger()
	younger := f.newZone(f.T, "younger.example", func(z *v1beta1.DNSZone) {
		z.Spec.RecordsFrom = append(z.Spec.RecordsFrom, v1beta1.RecordSource{Selector: metav1.LabelSelector{MatchLabels: f.labels()}})
	})
	record := f.aRecord("older-www", "www", "192.0.2.1")
	f.create(record)
	f.waitRecordStatus(record, v1beta1.RecordStatus{Zone: "older.example", PublishedName: "www.older.example", Addresses: "192.0.2.1"})
	f.waitServed("www.older.example", "A", "192.0.2.1")
	younger.waitServed("www.younger.example", "A")

	older := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	change(f, older, func(z *v1beta1.DNSZone) { z.Spec.RecordsFrom = nil })
	younger.waitServed("www.younger.example", "A", "192.0.2.1")
	f.waitServed("www.older.example", "A")
	f.waitRecordStatus(record, v1beta1.RecordStatus{Zone: "younger.example", PublishedName: "www.younger.example", Addresses: "192.0.2.1"})
	change(f, older, func(z *v1beta1.DNSZone) {
		z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: f.labels()}}}
	})
	f.waitServed("www.older.example", "A", "192.0.2.1")
	younger.waitServed("www.younger.example", "A")
	f.deleteAnyway(older)
	younger.waitServed("www.younger.example", "A", "192.0.2.1")
	f.waitRecordStatus(record, v1beta1.RecordStatus{Zone: "younger.example", PublishedName: "www.younger.example", Addresses: "192.0.2.1"})
}

// untilYounger waits until new objects are younger than the fixture's zone: Kubernetes counts ages in whole seconds.
func (f *fixture) untilYounger() {
	f.Helper()
	zone := &v1beta1.DNSZone{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: f.object}, zone); err != nil {
		f.Fatal(err)
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: f.meta("probe", nil)}
		if err := f.client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if !zone.CreationTimestamp.Before(&probe.CreationTimestamp) {
			return errors.New("a new object is of the same second as the zone")
		}
		return nil
	})
}

// markInstance sets labels and annotations of an instance.
func (f *fixture) markInstance(instance string, labels, annotations map[string]string) {
	f.Helper()
	i := &v1beta1.Bind9Instance{ObjectMeta: f.meta(instance, nil)}
	change(f, i, func(i *v1beta1.Bind9Instance) {
		if i.Annotations == nil {
			i.Annotations = map[string]string{}
		}
		maps.Copy(i.Labels, labels)
		maps.Copy(i.Annotations, annotations)
	})
}

// Two zones of one name that come onto the same servers: the older goes on, the younger says so, and takes over when the
// older is gone.
func writeDuplicateZone(f *fixture) {
	record := f.aRecord("twice-www", "www", "192.0.2.1")
	f.create(record)
	f.waitServed("www.twice.example", "A", "192.0.2.1")

	f.untilYounger()
	second := &fixture{T: f.T, client: f.client, namespace: f.namespace, zone: f.zone, object: "second"}
	z := second.dnsZone("second", f.zone)
	z.Spec.ClusterRef = ""
	z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"twice": "yes"}}}}
	f.create(z)
	waitCondition(f, z, zoneConditions, "Ready", metav1.ConditionFalse, "NoPrimaryInstances")
	other := second.aRecord("second-other", "other", "192.0.2.2")
	f.create(other)
	f.markInstance("dns-primary-0", map[string]string{"twice": "yes"}, nil)
	f.markInstance("dns-secondary-0", map[string]string{"twice": "yes"}, nil)
	waitCondition(f, z, zoneConditions, "Ready", metav1.ConditionFalse, "DuplicateZone", f.namespace+"/"+f.object)
	waitCondition(f, v1beta1.Record(other), recordConditions, "Ready", metav1.ConditionFalse, "ZoneNotConfigured")
	f.waitServed("www.twice.example", "A", "192.0.2.1")
	f.waitServed("other.twice.example", "A")

	f.deleteAnyway(&v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)})
	waitCondition(f, z, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
	f.waitReady(other)
	f.waitHosted(f.zone, kube.Settle, map[string]bool{"dns-primary-0-0": true, "dns-primary-1-0": false, "dns-secondary-0-0": true})
	f.waitReleased(record)
}

// A zone is served by instances of another namespace only while these allow it.
func writeInstanceElsewhere(f *fixture) {
	guest := &fixture{T: f.T, client: f.client, namespace: kube.Namespace(f, "it-guest"), zone: "guest.example", object: "guest"}
	z := guest.dnsZone("guest", guest.zone)
	z.Spec.ClusterRef = ""
	z.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: f.namespace} // Both sides have to consent.
	z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"guests": f.namespace}}}}
	record := guest.aRecord("www", "www", "192.0.2.1")
	guest.create(z, record)
	for _, instance := range []string{"dns-primary-0", "dns-secondary-0"} {
		f.markInstance(instance, map[string]string{"guests": f.namespace}, nil)
	}
	waitCondition(guest, z, zoneConditions, "Ready", metav1.ConditionFalse, "NoPrimaryInstances")
	waitCondition(guest, v1beta1.Record(record), recordConditions, "Ready", metav1.ConditionFalse, "NoPrimaryInstances")
	for _, instance := range []string{"dns-primary-0", "dns-secondary-0"} {
		f.markInstance(instance, nil, map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "nobody, " + guest.namespace})
	}
	waitCondition(guest, z, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
	guest.waitReady(record)
	f.waitHosted(guest.zone, kube.Settle, map[string]bool{"dns-primary-0-0": true, "dns-primary-1-0": false, "dns-secondary-0-0": true})
	for _, instance := range []string{"dns-primary-0", "dns-secondary-0"} {
		f.markInstance(instance, nil, map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "nobody"})
	}
	f.waitHosted(guest.zone, kube.Settle, map[string]bool{"dns-primary-0-0": false, "dns-secondary-0-0": false})
}

// A record of another namespace is published while both sides want that, and the namespace has the labels that the zone selects.
func writeRecordElsewhere(f *fixture) {
	guest := &fixture{T: f.T, client: f.client, namespace: kube.Namespace(f, "it-offered"), zone: f.zone, object: f.object}
	name := "www." + f.zone
	label := func(team string) {
		change(f, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guest.namespace}}, func(n *corev1.Namespace) { n.Labels["team"] = team })
	}
	label(f.namespace)
	record := guest.aRecord("www", "www", "192.0.2.1")
	guest.create(record)
	guest.waitReleased(record)
	change(f, &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}, func(z *v1beta1.DNSZone) {
		z.Spec.RecordsFrom[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": f.namespace}}
	})
	change(guest, record, func(r *v1beta1.ARecord) {
		r.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: f.namespace}
	})
	f.waitServed(name, "A", "192.0.2.1")
	guest.waitReady(record)
	own := f.aRecord(f.object+"-www", "www", "192.0.2.2")
	f.create(own)
	f.waitServed(name, "A", "192.0.2.1", "192.0.2.2")

	label("no")
	f.waitServed(name, "A", "192.0.2.2")
	guest.waitReleased(record)
	label(f.namespace)
	f.waitServed(name, "A", "192.0.2.1", "192.0.2.2")
	guest.waitReady(record)

	change(guest, record, func(r *v1beta1.ARecord) { delete(r.Annotations, v1beta1.AllowZoneNamespacesAnnotation) })
	f.waitServed(name, "A", "192.0.2.2")
	guest.waitReleased(record)
	change(guest, record, func(r *v1beta1.ARecord) {
		r.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}
	})
	f.waitServed(name, "A", "192.0.2.1", "192.0.2.2")
	if err := f.client.Delete(f.Context(), record); err != nil {
		f.Fatal(err)
	}
	f.waitServed(name, "A", "192.0.2.2")
	guest.waitGone(record)
}
