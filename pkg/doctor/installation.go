package doctor

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// The names of the Deployments in the manifests.
var deploymentNames = []string{controllerName, fleetName, apiServerName, webhookName}

const (
	controllerName = "lockstep-controller"
	fleetName      = "lockstep-fleet"
	apiServerName  = "lockstep-apiserver"
	webhookName    = "lockstep-webhook"
)

const applyManifests = "apply your overlay again: kubectl apply -k manifests/overlays/default"

// judgeDeployments looks for a pod that is available in each Deployment.
func judgeDeployments(f *Facts) Finding {
	if f.Deployments.Err != nil {
		return unread(f.Deployments.Request, f.Deployments.Err)
	}
	found := map[string]appsv1.Deployment{}
	for _, d := range f.Deployments.Value {
		found[d.Name] = d
	}
	if len(found) == 0 {
		return f.notInstalled()
	}
	worst := ok("all %d are available in %s", len(deploymentNames), f.Namespace)
	for _, name := range deploymentNames {
		d, exists := found[name]
		verdict := f.judgeDeployment(d)
		if !exists {
			verdict = failure(applyManifests, "%s does not exist in %s", name, f.Namespace)
		}
		worst = worse(worst, verdict)
	}
	return worst
}

func (f *Facts) notInstalled() Finding {
	if len(f.Elsewhere) > 0 {
		return failure("kubectl lockstep doctor --system-namespace="+f.Elsewhere[0], "Lockstep is not in namespace %s but in %s", f.Namespace, joinSome(f.Elsewhere, ", "))
	}
	return failure("install Lockstep: kubectl apply -k manifests/overlays/default", "namespace %s has no Deployment of Lockstep", f.Namespace)
}

func (f *Facts) judgeDeployment(d appsv1.Deployment) Finding {
	wanted, available := ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas
	pods := fmt.Sprintf("kubectl -n %s describe pods -l app.kubernetes.io/component=%s", f.Namespace, strings.TrimPrefix(d.Name, "lockstep-"))
	switch {
	case wanted == 0:
		return failure(fmt.Sprintf("kubectl -n %s scale deployment/%s --replicas=1", f.Namespace, d.Name), "%s is scaled to 0", d.Name)
	case available == 0:
		return failure(pods, "%s has no pod that is available", d.Name)
	case available < wanted:
		return warning(pods, "%s has %d of %d pods", d.Name, available, wanted)
	}
	return ok("")
}

// worse is the worse of two findings, the first if they are equal; of two that are bad it has both sentences.
func worse(a, b Finding) Finding {
	order := map[Level]int{OK: 0, Skipped: 1, Warning: 2, Failure: 3}
	if order[b.Level] > order[a.Level] {
		a, b = b, a
	}
	if order[b.Level] >= order[Warning] {
		a.Found += "; " + b.Found
	}
	return a
}

// judgeDefinitions compares the definitions that are installed with those of the plugin.
func judgeDefinitions(f *Facts) Finding {
	if f.Definitions.Err != nil {
		return unread(f.Definitions.Request, f.Definitions.Err)
	}
	installed := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, d := range f.Definitions.Value {
		installed[d.Name] = d
	}
	var missing, pending, different []string
	for _, known := range f.Known {
		d, exists := installed[known.Name]
		switch {
		case !exists:
			missing = append(missing, known.Name)
		case !apihelpers.IsCRDConditionTrue(&d, apiextensionsv1.Established):
			pending = append(pending, known.Name)
		case !sameVersions(d, known):
			different = append(different, known.Name)
		}
	}
	switch {
	case len(missing) > 0:
		return failure(applyManifests, "missing: %s", joinSome(missing, ", "))
	case len(pending) > 0:
		return failure("kubectl describe crd "+pending[0], "not established: %s", joinSome(pending, ", "))
	case len(different) > 0:
		return warning("use the plugin of the version that is installed, or apply the manifests of the plugin's version",
			"not those of this plugin: %s", joinSome(different, ", "))
	}
	return ok("all %d are established, and are those of this plugin", len(f.Known))
}

// sameVersions compares the versions and schemas of two definitions as JSON: defaults and enumerations are kept as text, whose spaces do
// not matter.
func sameVersions(a, b apiextensionsv1.CustomResourceDefinition) bool {
	return reflect.DeepEqual(schemasOf(a), schemasOf(b))
}

func schemasOf(d apiextensionsv1.CustomResourceDefinition) (all map[string]any) {
	all = map[string]any{}
	for _, v := range d.Spec.Versions {
		var schema any
		text, err := json.Marshal(v.Schema)
		if err == nil {
			err = json.Unmarshal(text, &schema)
		}
		all[v.Name] = []any{v.Served, v.Storage, schema, err}
	}
	return all
}

// leaseGrace is how much later than announced a lease may be renewed: kube-apiserver and etcd may be slow.
const leaseGrace = 5 * time.Second

// judgeLeases looks for a leader of the controller and of the fleet manager that renews its lease.
func judgeLeases(f *Facts) Finding {
	worst, holders := ok(""), []string{}
	for _, l := range f.Leases {
		if l.Err != nil {
			worst = worse(worst, unreadLease(l.Request, l.Err))
			continue
		}
		holder, spec := ptr.Deref(l.Value.Spec.HolderIdentity, ""), l.Value.Spec
		remedy := fmt.Sprintf("kubectl -n %s logs deployment/%s", f.Namespace, l.Value.Name)
		limit := time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0))*time.Second + leaseGrace
		switch {
		case holder == "":
			worst = worse(worst, failure(remedy, "nobody holds lease %s", l.Value.Name))
		case spec.RenewTime == nil || f.Now.Sub(spec.RenewTime.Time) > limit:
			worst = worse(worst, failure(remedy, "%s has not renewed lease %s since %s", holder, l.Value.Name, formatTime(spec.RenewTime)))
		default:
			holders = append(holders, holder)
		}
	}
	if worst.Level == OK {
		worst.Found = "held and renewed by " + strings.Join(holders, " and ")
	}
	return worst
}
