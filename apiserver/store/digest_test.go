package store

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// undigested are the fields of a zone's SyncStatus that are no news by themselves.
var undigested = []string{
	// Times, and how long a question took.
	".CachesExpireAt", ".ObservedAt",
	".Paths.ObservedAt", ".Paths.RTT",
	".Servers.BehindSince", ".Servers.ExpiresAt", ".Servers.ObservedAt", ".Servers.RTT", ".Servers.SignaturesExpireAt",
	".Status.Conditions.LastTransitionTime",
	// Serials of paths, and of other zones than this one; the lag follows from the serials.
	".Paths.Serial", ".Servers.SerialLag", ".Servers.Zones.Worst.Serial", ".Servers.Zones.Worst.SerialLag",
	// Of several servers behind one address, another one answers each time.
	".Paths.Server",
	// Only whoever asks for the SyncStatus by name gets it.
	".Chain",
}

// TestDigest changes each field, and takes each list and each optional value away.
func TestDigest(t *testing.T) {
	st, s, ignored := newStore(), &syncv1.SyncStatus{}, map[string]bool{}
	fillOnce(reflect.ValueOf(s).Elem())
	s.ObjectRef.Kind = subject.ZoneKind.Kind
	before := st.Digest(s)
	changeEach(reflect.ValueOf(s).Elem(), "", func(path string) (deeper bool) {
		if st.Digest(s) == before {
			ignored[path] = true
		}
		return !ignored[path]
	})
	if st.Digest(s) != before {
		t.Fatal("the test has not restored what it changed")
	}
	got := slices.Sorted(maps.Keys(ignored))
	if diff := cmp.Diff(slices.Sorted(slices.Values(undigested)), got); diff != "" {
		t.Errorf("a watch is not notified of changes of (-want +got):\n%s", diff)
	}
	a, b := &syncv1.NameServer{Addresses: []string{"x"}}, &syncv1.NameServer{Instances: []string{"x"}}
	if st.Digest(&syncv1.SyncStatus{NameServers: []syncv1.NameServer{*a}}) == st.Digest(&syncv1.SyncStatus{NameServers: []syncv1.NameServer{*b}}) {
		t.Error("a value that moves from one list to the next is no change")
	}
}

// fillOnce sets every field, each list to one element.
func fillOnce(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillOnce(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillOnce(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"key": "value"}))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(7, 0)))
			return
		}
		for _, f := range fieldsOf(v) {
			fillOnce(v.FieldByIndex(f.Index))
		}
	default:
		panic(v.Type())
	}
}

// changeEach changes one value after the other, by its path, and looks into those that seen says.
func changeEach(v reflect.Value, path string, seen func(path string) (deeper bool)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	deeper := true
	change := func(to any) {
		v.Set(reflect.ValueOf(to).Convert(v.Type()))
		deeper = seen(path)
		v.Set(was)
	}
	switch v.Kind() {
	case reflect.String:
		change(v.String() + "s")
	case reflect.Bool:
		change(!v.Bool())
	case reflect.Int32, reflect.Int64:
		change(v.Int() + 1)
	case reflect.Map:
		change(map[string]string{"key": "other"})
	case reflect.Pointer:
		if change(reflect.Zero(v.Type()).Interface()); deeper {
			changeEach(v.Elem(), path, seen)
		}
	case reflect.Slice:
		if change(reflect.Zero(v.Type()).Interface()); deeper {
			changeEach(v.Index(0), path, seen)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			change(metav1.Unix(8, 0))
			return
		}
		for _, f := range fieldsOf(v) {
			changeEach(v.FieldByIndex(f.Index), path+"."+f.Name, seen)
		}
	default:
		panic(v.Type())
	}
}

// fieldsOf are the fields of a value. Of metadata only the labels count: the rest names the SyncStatus, or is in the reference to its object.
func fieldsOf(v reflect.Value) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
		isOther := v.Type() == reflect.TypeFor[metav1.ObjectMeta]() && f.Name != "Labels" || v.Type() == reflect.TypeFor[metav1.TypeMeta]()
		return len(f.Index) > 1 || isOther
	})
}
