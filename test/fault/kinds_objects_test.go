package fault

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// objectKinds delete and change objects that Lockstep made.
var objectKinds = []kind{
	{"delete-secret", 2, fleetNames, false, func(w *world, f *fault) error {
		name := pick(w, named.KeyringSecretName(f.target, named.KeyUpdate), named.KeyringSecretName(f.target, named.KeyTransfer),
			named.CertificateSecretName(f.instance(w)))
		return w.deleteObject(f, "v1", "Secret", name)
	}},
	{"delete-service", 2, fleetNames, false, func(w *world, f *fault) error { return w.deleteObject(f, "v1", "Service", f.instance(w)) }},
	{"delete-configmap", 1, fleetNames, false, func(w *world, f *fault) error {
		return w.deleteObject(f, "v1", "ConfigMap", f.instance(w)+"-config")
	}},
	{"delete-role", 2, fleetNames, false, func(w *world, f *fault) error {
		name, err := w.role()
		if err != nil {
			return err
		}
		return w.deleteObject(f, rbacv1.SchemeGroupVersion.String(), "Role", name)
	}},
	{"change-secret", 2, fleetNames, false, func(w *world, f *fault) error {
		return w.changeObject(f, "v1", "Secret", named.CertificateSecretName(f.instance(w)), `{"data":{"tls.crt":"YnJva2Vu"}}`)
	}},
	{"change-service", 2, fleetNames, false, func(w *world, f *fault) error {
		return w.changeObject(f, "v1", "Service", f.instance(w), `{"spec":{"selector":{"changed":"by-hand"}}}`)
	}},
	{"change-role", 2, fleetNames, false, func(w *world, f *fault) error {
		name, err := w.role()
		if err != nil {
			return err
		}
		return w.changeObject(f, rbacv1.SchemeGroupVersion.String(), "Role", name, `{"rules":[]}`)
	}},
}

// role draws one of the Roles in the world.
func (w *world) role() (string, error) {
	var roles rbacv1.RoleList
	if err := w.client.List(w.Context(), &roles, client.InNamespace(w.namespace)); err != nil || len(roles.Items) == 0 {
		return "", errors.Join(err, errNotNow)
	}
	return roles.Items[w.random(len(roles.Items))].Name, nil
}

// instance draws an instance of the fault's fleet.
func (f *fault) instance(w *world) string {
	pod := pick(w, fleetOf(f.target).pods()...)
	return pod[:len(pod)-len("-0")]
}

// object reads an object that a fault is about, and adds it to the fault's target.
func (w *world) object(f *fault, version, kind, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	f.target += " " + kind + " " + name
	return o, w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o)
}

// deleteObject deletes an object and expects another one in its place.
func (w *world) deleteObject(f *fault, version, kind, name string) error {
	o, err := w.object(f, version, kind, name)
	if err != nil {
		return err
	}
	uid := o.GetUID()
	if err := w.client.Delete(w.Context(), o); err != nil {
		return err
	}
	w.expectBack(f, o, func() error {
		if o.GetUID() == uid {
			return errors.New("it is still there")
		}
		return nil
	})
	return nil
}

// changeObject changes an object and expects it as it was.
func (w *world) changeObject(f *fault, version, kind, name, patch string) error {
	o, err := w.object(f, version, kind, name)
	if err != nil {
		return err
	}
	before := o.DeepCopy()
	if err := w.client.Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return err
	}
	changed := o.DeepCopy()
	w.expectBack(f, o, func() error {
		for _, field := range []string{"data", "spec", "rules"} {
			if !reflect.DeepEqual(before.Object[field], changed.Object[field]) && reflect.DeepEqual(o.Object[field], changed.Object[field]) {
				return fmt.Errorf("%s is as it was changed", field)
			}
		}
		return nil
	})
	return nil
}

// expectBack writes down when an object is back. The world goes on meanwhile.
func (w *world) expectBack(f *fault, o *unstructured.Unstructured, isBack func() error) {
	f.started, f.ending = now(), now()
	target, begin := f.target, now()
	w.remade.Go(func() {
		err := w.until(remakeTimeout, func(ctx context.Context) error {
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			return isBack()
		})
		w.history.write("remade", entry{"fault": f.id, "object": target, "begin": begin, "end": now(), "there": err == nil})
	})
}
