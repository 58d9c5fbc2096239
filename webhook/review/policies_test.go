package review

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// rights are what a user may create, "pods in dns", and which Secrets it may get, "secrets/key in dns" or "secrets in dns"; a namespace of
// "" is all of them. "zonegrants" is the right to update these.
type rights map[string]bool

// Authorize implements authorizer.UnconditionalAuthorizer.
func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "create" && a.GetAPIGroup() == "" && r[a.GetResource()+" in "+a.GetNamespace()] {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetVerb() == "update" && a.GetAPIGroup() == v1beta1.GroupName && r[a.GetResource()] {
		return authorizer.DecisionAllow, "", nil
	}
	if all := "secrets in " + a.GetNamespace(); a.GetVerb() == "get" && a.GetAPIGroup() == "" && a.GetResource() == "secrets" &&
		(r[all] || a.GetName() != "" && r["secrets/"+a.GetName()+" in "+a.GetNamespace()]) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// Where the policies are.
const (
	basePolicies  = "../../manifests/base/policies.yaml"
	imagePolicies = "../../manifests/components/image-policy/policy.yaml"
)

// compiledPolicy is a policy of a file as kube-apiserver compiles it.
func compiledPolicy(t *testing.T, file, name string) validating.Validator {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		policy = admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal(document, &policy); err != nil {
			t.Fatal(err)
		}
		if policy.Kind == "ValidatingAdmissionPolicy" && policy.Name == name {
			break
		}
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	withAuthorizer := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var conditions []cel.ExpressionAccessor
	for _, c := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&c))
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, withAuthorizer, environment.StoredExpressions),
		policy.Spec.FailurePolicy, "policy", "validate", name)
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, withAuthorizer, environment.StoredExpressions)
	var rules, messages, annotations []cel.ExpressionAccessor
	for _, a := range policy.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	for _, v := range policy.Spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: v.Expression, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	return validating.NewValidator(compiler.CompileCondition(rules, withAuthorizer, environment.StoredExpressions), matcher,
		compiler.CompileCondition(annotations, withAuthorizer, environment.StoredExpressions),
		compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions), policy.Spec.FailurePolicy, nil)
}

// podPolicy is the one that decides what our kinds put into pods.
func podPolicy(t *testing.T) validating.Validator {
	t.Helper()
	return compiledPolicy(t, basePolicies, "lockstep-pods-and-services")
}

// policyRequest is what a policy judges. object is empty for a deletion, old for a creation; level is the one that Pod Security enforces
// in the namespace, which a cluster-scoped object does not have.
type policyRequest struct {
	rights            rights
	user, object, old string
	level             string
}

// refusal returns what is answered; empty when the request is accepted.
func (r policyRequest) refusal(t *testing.T, policy validating.Validator) string {
	t.Helper()
	var refusals []string
	for _, d := range r.judge(t, policy).Decisions {
		if d.Action != validating.ActionAdmit {
			refusals = append(refusals, d.Message)
		}
	}
	return strings.Join(refusals, "\n")
}

// audited returns what is published of the request in the audit log, by key.
func (r policyRequest) audited(t *testing.T, policy validating.Validator) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range r.judge(t, policy).AuditAnnotations {
		switch a.Action {
		case validating.AuditAnnotationActionPublish:
			all[a.Key] = a.Value
		case validating.AuditAnnotationActionExclude:
		case validating.AuditAnnotationActionError:
			t.Errorf("audit annotation %s: %s", a.Key, a.Error)
		}
	}
	return all
}

func (r policyRequest) judge(t *testing.T, policy validating.Validator) validating.ValidateResult {
	t.Helper()
	operation := admission.Update
	switch {
	case r.old == "":
		operation = admission.Create
	case r.object == "":
		operation = admission.Delete
	}
	object, old := objectOf(t, r.object), objectOf(t, r.old)
	attributes := admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "dns", "x",
		schema.GroupVersionResource{}, "", operation, nil, false, &user.DefaultInfo{Name: cmp.Or(r.user, "jane")})
	versioned := &admission.VersionedAttributes{Attributes: attributes}
	versioned.VersionedObject.Set(attributes.GetObject())
	versioned.VersionedOldObject.Set(attributes.GetOldObject())
	var namespace *corev1.Namespace
	if strings.Contains(r.object, "namespace: dns}") {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dns", Labels: map[string]string{"pod-security.kubernetes.io/enforce": r.level}}}
	}
	return policy.Validate(t.Context(), schema.GroupVersionResource{}, versioned, nil, namespace, celconfig.RuntimeCELCostBudget, r.rights)
}

// expect requires that the answer contains all of want, or with nothing wanted that the request is accepted.
func (r policyRequest) expect(t *testing.T, policy validating.Validator, want ...string) {
	t.Helper()
	got := r.refusal(t, policy)
	if (got == "") != (len(want) == 0) {
		t.Errorf("answered %q, want %q", got, want)
	}
	for _, words := range want {
		if !strings.Contains(got, words) {
			t.Errorf("answered %q, want %q", got, words)
		}
	}
}

// Whoever sets or changes a field that decides about pods or Services needs the right to create these in that namespace.
func TestPodFieldsNeedTheRightToPods(t *testing.T) {
	const (
		volume = `{metadata: {namespace: dns}, spec: {role: primary, volumes: [{name: host, hostPath: {path: /}}]}}`
		plain  = `{metadata: {namespace: dns}, spec: {role: primary}}`
		global = `{metadata: {}, spec: {primary: {replicas: 1}, volumes: [{name: ca, secret: {secretName: lockstep-ca}}]}}`
	)
	inNamespace := strings.Replace(global, "spec: {", "spec: {namespace: dns, ", 1)
	for name, c := range map[string]struct {
		rights      rights
		object, old string
		refused     string
	}{
		"a volume":                            {rights{}, volume, "", "right to create pods in namespace dns"},
		"a volume, with the right":            {rights{"pods in dns": true}, volume, "", ""},
		"a volume, with the right elsewhere":  {rights{"pods in other": true, "services in dns": true}, volume, "", "right to create pods in namespace dns"},
		"nothing of it":                       {rights{}, plain, "", ""},
		"a volume that was there":             {rights{}, strings.Replace(volume, "spec: {", "spec: {replicas: 2, ", 1), volume, ""},
		"a volume that is added":              {rights{}, volume, plain, "right to create pods"},
		"a volume that is changed":            {rights{}, strings.Replace(volume, "path: /", "path: /etc", 1), volume, "right to create pods"},
		"a volume that is removed":            {rights{}, plain, volume, "right to create pods"},
		"a node":                              {rights{"services in dns": true}, `{metadata: {namespace: dns}, spec: {role: primary, placement: {nodeSelector: {edge: "yes"}}}}`, "", "right to create pods in namespace dns"},
		"a label of pods":                     {rights{}, `{metadata: {namespace: dns}, spec: {secondary: {podLabels: {app: web}}}}`, "", "right to create pods in namespace dns"},
		"a toleration of the cluster":         {rights{}, `{metadata: {namespace: dns}, spec: {placement: {tolerations: [{operator: Exists}]}}}`, "", "right to create pods in namespace dns"},
		"a priority, with the right":          {rights{"pods in dns": true}, `{metadata: {namespace: dns}, spec: {primary: {placement: {priorityClassName: high}}}}`, "", ""},
		"resources and a spread":              {rights{}, `{metadata: {namespace: dns}, spec: {primary: {resources: {limits: {memory: 1Gi}}, placement: {spread: [{topologyKey: zone}]}}}}`, "", ""},
		"a Service of the instance":           {rights{"pods in dns": true}, `{metadata: {namespace: dns}, spec: {role: primary, service: {annotations: {pool: public}}}}`, "", "right to create services in namespace dns"},
		"a Service":                           {rights{"pods in dns": true}, `{metadata: {namespace: dns}, spec: {primary: {service: {spec: {externalIPs: [192.0.2.1]}}}}}`, "", "right to create services in namespace dns"},
		"a global cluster":                    {rights{"pods in lockstep-system": true}, global, "", "right to create pods in all namespaces"},
		"a global cluster, with the right":    {rights{"pods in ": true}, global, "", ""},
		"a global cluster with a namespace":   {rights{"pods in dns": true}, inNamespace, "", ""},
		"a global cluster that moves":         {rights{"pods in dns": true}, inNamespace, strings.Replace(inNamespace, "dns", "other", 1), ""},
		"a global cluster that moves to ours": {rights{"pods in dns": true}, global, inNamespace, "right to create pods in all namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			// What volumes hold is another rule's.
			got := policyRequest{rights: c.rights, object: c.object, old: c.old, level: "privileged"}.refusal(t, podPolicy(t))
			if (got == "") != (c.refused == "") || !strings.Contains(got, c.refused) {
				t.Errorf("answered %q, want %q", got, c.refused)
			}
		})
	}
}

// harmless are the fields of a type of Kubernetes' own, or with a name like those that count, that decide neither about pods nor
// Services, and why.
var harmless = map[string]string{
	"rndcSecretRefs":  "it has no effect",
	"keysFrom":        "it has no effect",
	"secret":          "it has no effect",
	"hostNetwork":     "it is refused",
	"resources":       "quotas and limits hold for every pod",
	"emptyDir":        "scratch space of the pod",
	"imagePullPolicy": "of an image that counts itself",
	"accessModes":     "of a claim that is created",
	"spread":          "it leads a pod to no node that the pod could not have been on",
	"tls":             "it has no effect",
}

// Every field of the specifications that has one of Kubernetes' own types, or names an image, a ConfigMap, a claim or a Secret, is
// known to the policy or harmless.
func TestPolicyKnowsEveryField(t *testing.T) {
	policy := podPolicy(t)
	found := 0
	for _, spec := range []any{v1beta1.Bind9InstanceSpec{}, v1beta1.Bind9ClusterSpec{}, v1beta1.GlobalClusterSpec{}} {
		for _, path := range sensitivePaths(reflect.TypeOf(spec), nil) {
			found++
			var value any = map[string]any{"name": "x"}
			for i := len(path) - 1; i >= 0; i-- {
				value = map[string]any{path[i]: value}
			}
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": "dns"}, "spec": value})
			if err != nil {
				t.Fatal(err)
			}
			if (policyRequest{object: string(text)}).refusal(t, policy) == "" {
				t.Errorf("%T: anybody may set %s", spec, strings.Join(path, "."))
			}
		}
	}
	if found < 40 {
		t.Errorf("%d fields found: too few to be all", found)
	}
}

// sensitivePaths returns the paths, by JSON names, of the fields of a type that are not harmless.
func sensitivePaths(of reflect.Type, at []string) (paths [][]string) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := harmless[name]; ok {
			continue
		}
		path := append(append([]string(nil), at...), name)
		if field.Anonymous {
			path = at
		}
		target := field.Type
		for target.Kind() == reflect.Pointer || target.Kind() == reflect.Slice {
			target = target.Elem()
		}
		switch {
		case target.PkgPath() == reflect.TypeFor[corev1.Pod]().PkgPath(), name == "image", name == "claimName", name == "nodeSelector", name == "priorityClassName",
			strings.HasPrefix(name, "pod"), // Labels and annotations of pods.
			target == reflect.TypeFor[v1beta1.RNDCSecretRef](), target == reflect.TypeFor[v1beta1.ConfigMapRefs](), target == reflect.TypeFor[v1beta1.ServiceConfig]():
			paths = append(paths, path)
		case target.Kind() == reflect.Struct:
			paths = append(paths, sensitivePaths(target, path)...)
		}
	}
	return paths
}

// Whoever names a Secret needs the right to get that Secret, in the namespace in which it is read.
func TestSecretsNeedTheRightToGetThem(t *testing.T) {
	policy := compiledPolicy(t, basePolicies, "lockstep-secrets")
	const (
		etcd = `{metadata: {namespace: dns}, spec: {coreDNS: {etcd: {endpoints: ["https://a:2379"], credentialsSecretRef: {name: database}}}}}`
		key  = `{metadata: {namespace: dns}, spec: {rfc2136: {primaries: [{address: 192.0.2.1}], updateKey: {secretRef: {name: update}}, transferKey: {secretRef: {name: transfer}}}}}`
	)
	edit := func(object, from, to string) string { return strings.Replace(object, from, to, 1) }
	roles := `rndcSecretRef: {name: a}, rndcKey: {secretRef: {name: b}}, rndcKeys: {secretRef: {name: c}}`
	many := `{metadata: {namespace: dns}, spec: {` + roles + `, primary: {` + strings.NewReplacer("a}", "d}", "b}", "e}", "c}", "f}").Replace(roles) + `}, image: {imagePullSecrets: [g]}}}`
	six := rights{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		six["secrets/"+name+" in dns"] = true
	}
	const refused = "you need the right to get it in namespace dns"
	for name, c := range map[string]struct {
		rights      rights
		object, old string
		want        []string
	}{
		"no right":                         {rights{"pods in dns": true}, etcd, "", []string{"Secret database: to name", refused}},
		"the right":                        {rights{"secrets/database in dns": true}, etcd, "", nil},
		"the right to all":                 {rights{"secrets in dns": true}, etcd, "", nil},
		"the right to another":             {rights{"secrets/other in dns": true}, etcd, "", []string{refused}},
		"the right elsewhere":              {rights{"secrets in other": true}, etcd, "", []string{refused}},
		"one of two":                       {rights{"secrets/update in dns": true}, key, "", []string{"Secret update, transfer: to name"}},
		"both":                             {rights{"secrets/update in dns": true, "secrets/transfer in dns": true}, key, "", nil},
		"one that stays":                   {rights{}, edit(key, "}}}}}", "}}, readBy: Query}}}"), key, nil},
		"one that changes":                 {rights{"secrets/update in dns": true}, edit(key, "name: transfer", "name: other"), key, []string{"Secret other: to name"}},
		"one that goes":                    {rights{}, edit(key, ", transferKey: {secretRef: {name: transfer}}", ""), key, nil},
		"another server":                   {rights{}, edit(key, "192.0.2.1", "192.0.2.2"), key, []string{"Secret update, transfer: to name", "where it is used"}},
		"another etcd":                     {rights{}, edit(etcd, "//a", "//b"), etcd, []string{"where it is used"}},
		"one more etcd":                    {rights{}, edit(etcd, `"]`, `", "https://b:2379"]`), etcd, []string{"where it is used"}},
		"another authority of etcd":        {rights{"secrets/mine in dns": true}, edit(etcd, "credentials", "tlsSecretRef: {name: mine}, credentials"), etcd, []string{"Secret mine, database"}},
		"another replica":                  {rights{}, edit(etcd, "spec: {coreDNS: {", "spec: {coreDNS: {servers: {addresses: [{address: 192.0.2.9}]}, "), etcd, nil},
		"as many as are asked for":         {six, edit(many, ", image: {imagePullSecrets: [g]}", ""), "", nil},
		"more than are asked for":          {six, many, "", []string{"more than six at once, the right to get all Secrets there"}},
		"more, with the right to all":      {rights{"secrets in dns": true}, many, "", nil},
		"the sixth of six":                 {rights{"secrets/a in dns": true, "secrets/b in dns": true, "secrets/c in dns": true, "secrets/d in dns": true, "secrets/e in dns": true}, edit(many, ", image: {imagePullSecrets: [g]}", ""), "", []string{refused}},
		"a global cluster":                 {rights{"secrets in dns": true}, `{metadata: {}, spec: {primary: {rndcSecretRef: {name: a}}}}`, "", []string{"right to get it in all namespaces"}},
		"a global cluster in a namespace":  {rights{"secrets in dns": true}, `{metadata: {}, spec: {namespace: dns, primary: {rndcSecretRef: {name: a}}}}`, "", nil},
		"a global cluster that goes there": {rights{"secrets in other": true}, `{metadata: {}, spec: {namespace: dns, primary: {rndcSecretRef: {name: a}}}}`, `{metadata: {}, spec: {namespace: other, primary: {rndcSecretRef: {name: a}}}}`, []string{refused}},
		"no Secret at all":                 {rights{}, `{metadata: {namespace: dns}, spec: {role: primary}}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			policyRequest{rights: c.rights, object: c.object, old: c.old}.expect(t, policy, c.want...)
		})
	}
}

// The audit log has which Secrets a request newly names or uses elsewhere, granted or not, and nothing of other requests.
func TestReviewOfSecretsIsAudited(t *testing.T) {
	policy := compiledPolicy(t, basePolicies, "lockstep-secrets")
	const etcd = `{metadata: {namespace: dns}, spec: {coreDNS: {etcd: {endpoints: ["https://a:2379"], credentialsSecretRef: {name: database}}}}}`
	for name, c := range map[string]struct {
		request policyRequest
		want    map[string]string
	}{
		"granted":          {policyRequest{rights: rights{"secrets in dns": true}, object: etcd}, map[string]string{"reviewed-secrets": "get database in namespace dns"}},
		"refused":          {policyRequest{object: etcd}, map[string]string{"reviewed-secrets": "get database in namespace dns"}},
		"used elsewhere":   {policyRequest{object: strings.Replace(etcd, "//a", "//b", 1), old: etcd}, map[string]string{"reviewed-secrets": "get database in namespace dns"}},
		"one that stays":   {policyRequest{object: etcd, old: etcd}, map[string]string{}},
		"a global cluster": {policyRequest{object: `{metadata: {}, spec: {primary: {rndcSecretRef: {name: a}, rndcKey: {secretRef: {name: b}}}}}`}, map[string]string{"reviewed-secrets": "get a, b in all namespaces"}},
		"no Secret at all": {policyRequest{object: `{metadata: {namespace: dns}, spec: {role: primary}}`}, map[string]string{}},
		"one that goes":    {policyRequest{object: `{metadata: {namespace: dns}, spec: {}}`, old: etcd}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.request.audited(t, policy); !maps.Equal(got, c.want) {
				t.Errorf("published %v, want %v", got, c.want)
			}
		})
	}
}

// Every field that names a Secret is known to the policy, unless it has no effect.
func TestSecretPolicyKnowsEveryField(t *testing.T) {
	policy := compiledPolicy(t, basePolicies, "lockstep-secrets")
	found := 0
	for _, spec := range []any{v1beta1.Bind9InstanceSpec{}, v1beta1.Bind9ClusterSpec{}, v1beta1.GlobalClusterSpec{}, v1beta1.DNSProviderSpec{}} {
		for _, path := range secretPaths(reflect.TypeOf(spec), nil) {
			found++
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": "dns"}, "spec": valueAt(path)})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains((policyRequest{object: string(text)}).refusal(t, policy), "Secret borrowed: ") {
				t.Errorf("%T: anybody may name a Secret in %s: %s", spec, strings.Join(path, "."), text)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d fields found: too few to be all", found)
	}
}

// valueAt returns an object with the name of a Secret at a path, of which "[]" is a list.
func valueAt(path []string) any {
	var value any = "borrowed"
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == "[]" {
			value = []any{value}
		} else {
			value = map[string]any{path[i]: value}
		}
	}
	return value
}

// mountedByAny are volumes that the policy of pods refuses, but where anybody who may create pods may mount anything.
var mountedByAny = map[string]bool{
	"projected": true, "iscsi": true, "rbd": true, "flexVolume": true, "cephfs": true, "azureFile": true, "scaleIO": true, "storageos": true, "csi": true,
	"ephemeral": true,
}

// secretPaths returns the paths, by JSON names, of the fields of a type that name a Secret.
func secretPaths(of reflect.Type, at []string) (paths [][]string) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := harmless[name]; ok && name != "secret" && name != "tls" || mountedByAny[name] {
			continue
		}
		path := append(append([]string(nil), at...), name)
		if field.Anonymous {
			path = append([]string(nil), at...)
		}
		target := field.Type
		for target.Kind() == reflect.Pointer || target.Kind() == reflect.Slice {
			if target.Kind() == reflect.Slice {
				path = append(path, "[]")
			}
			target = target.Elem()
		}
		switch {
		case target == reflect.TypeFor[v1beta1.BindcarTLSConfig](), target == reflect.TypeFor[v1beta1.RNDCSecretTemplate]():
			// They have no effect.
		case target == reflect.TypeFor[v1beta1.RNDCSecretRef](), target == reflect.TypeFor[v1beta1.ProviderSecret](), target == reflect.TypeFor[corev1.SecretKeySelector]():
			paths = append(paths, append(path, "name"))
		case name == "secretName", name == "imagePullSecrets":
			paths = append(paths, path)
		case target.Kind() == reflect.Struct && target != reflect.TypeFor[metav1.Time]():
			paths = append(paths, secretPaths(target, path)...)
		}
	}
	return paths
}

// everything is all rights that count.
var everything = rights{"pods in dns": true, "services in dns": true, "pods in ": true, "services in ": true}

// The right to pods is none to a host path: volumes are of the namespace, wherever they are listed, unless an administrator permits any pod
// there.
func TestVolumesAreOfTheNamespace(t *testing.T) {
	const own = `[{name: a, emptyDir: {}}, {name: b, configMap: {name: c}}, {name: c, secret: {secretName: s}}, {name: d, persistentVolumeClaim: {claimName: p}}, {name: e, ephemeral: {volumeClaimTemplate: {spec: {}}}}]`
	instance := func(spec string) string { return "{metadata: {namespace: dns}, spec: {role: primary, " + spec + "}}" }
	host := instance("volumes: [{name: host, hostPath: {path: /}}]")
	for name, c := range map[string]struct {
		object, old, level string
		want               []string
	}{
		"its own":                   {object: instance("volumes: " + own)},
		"a host path":               {object: host, level: "baseline", want: []string{"volumes: host has hostPath: use emptyDir, configMap", "kubectl label namespace dns pod-security.kubernetes.io/enforce=privileged"}},
		"a host path where any may": {object: host, level: "privileged"},
		"of the sidecar":            {object: instance("bindcarConfig: {volumes: [{name: a, csi: {driver: x}}]}"), want: []string{"a has csi"}},
		"of a role's sidecar":       {object: instance("config: {bindcarConfig: {volumes: [{name: a, nfs: {server: x, path: /}}]}}"), want: []string{"a has nfs"}},
		"of all sidecars":           {object: instance("global: {bindcarConfig: {volumes: [{name: a, projected: {sources: []}}]}}"), want: []string{"a has projected"}},
		"hidden among others":       {object: instance("volumes: [{name: a, emptyDir: {}, hostPath: {path: /}}]"), want: []string{"a has", "hostPath"}},
		"one that was there":        {object: strings.Replace(host, "role", "replicas: 2, role", 1), old: host},
		"one that is added to it":   {object: instance("volumes: [{name: host, hostPath: {path: /}}, {name: etc, hostPath: {path: /etc}}]"), old: host, want: []string{"volumes: etc has hostPath:"}},
		"a cluster-scoped cluster":  {object: "{metadata: {}, spec: {volumes: [{name: a, hostPath: {path: /}}]}}", want: []string{"kubectl label namespace NAMESPACE", "and for a Bind9Cluster there"}},
	} {
		t.Run(name, func(t *testing.T) {
			policyRequest{rights: everything, object: c.object, old: c.old, level: c.level}.expect(t, podPolicy(t), c.want...)
		})
	}
}

// The environment of the sidecar does not lead it to another Kubernetes.
func TestEnvironmentOfTheSidecar(t *testing.T) {
	for variable, refused := range map[string]bool{
		"RUST_LOG": false, "RATE_LIMIT_ENABLED": false, "NO_PROXY_NEEDED": false,
		"KUBERNETES_SERVICE_HOST": true, "KUBE_API": true, "https_proxy": true, "HTTP_PROXY": true, "SSL_CERT_FILE": true, "GODEBUG": true,
	} {
		for _, at := range []string{"{%s}", "{config: {%s}}", "{global: {%s}}"} {
			spec := strings.Replace(at, "%s", "bindcarConfig: {envVars: [{name: "+variable+", value: x}]}", 1)
			var want []string
			if refused {
				want = []string{"bindcarConfig.envVars: " + variable + ": these variables", "leave them out"}
			}
			policyRequest{rights: everything, object: "{metadata: {namespace: dns}, spec: " + spec + "}"}.expect(t, podPolicy(t), want...)
		}
	}
}

// The fleet manager runs nothing as another account, whoever commands it.
func TestWorkloadsOfTheFleetManager(t *testing.T) {
	const fleet = "system:serviceaccount:lockstep-system:lockstep-fleet"
	set := func(account string) string {
		return "{metadata: {name: x, namespace: dns}, spec: {template: {spec: {" + account + "}}}}"
	}
	policy := compiledPolicy(t, basePolicies, "lockstep-workloads")
	policyRequest{user: fleet, object: set("serviceAccountName: x-bind9")}.expect(t, policy)
	policyRequest{user: fleet, object: set("serviceAccountName: cluster-admin")}.expect(t, policy, "StatefulSet dns/x as ServiceAccount x-bind9 only, not as cluster-admin")
	policyRequest{user: fleet, object: set(""), old: set("serviceAccountName: x-bind9")}.expect(t, policy, "not as default")
	policyRequest{object: set("serviceAccountName: cluster-admin")}.expect(t, policy)
}

// Nobody but the fleet manager changes what named is configured with, and everything can be cleaned up: by those who may create pods, too.
func TestConfigurationIsTheFleetManagers(t *testing.T) {
	configMap := func(data string) string {
		return "{metadata: {namespace: dns, annotations: {a: " + data + "}, labels: {app.kubernetes.io/instance: x}}, data: {named.conf: " + data + "}}"
	}
	policy := compiledPolicy(t, basePolicies, "lockstep-configuration")
	refused := []string{"ConfigMap x has the configuration that the fleet manager wrote", "change the Bind9Instance x ", "configMapRefs"}
	for user, want := range map[string][]string{
		"jane": refused, "system:serviceaccount:dns:lockstep-fleet": refused,
		"system:serviceaccount:lockstep-system:lockstep-fleet": nil, "system:kube-controller-manager": nil,
		"system:serviceaccount:kube-system:namespace-controller": nil,
	} {
		policyRequest{user: user, object: configMap("new"), old: configMap("old")}.expect(t, policy, want...)
		policyRequest{user: user, object: strings.Replace(configMap("old"), "instance: x", "instance: y", 1), old: configMap("old")}.expect(t, policy, want...)
		policyRequest{user: user, object: strings.Replace(configMap("old"), "annotations", "ownerReferences: [{uid: gone}], annotations", 1), old: configMap("old")}.expect(t, policy, want...)
		policyRequest{user: user, object: strings.Replace(configMap("old"), "data: {", "immutable: true, data: {", 1), old: configMap("old")}.expect(t, policy, want...)
		policyRequest{user: user, old: configMap("old")}.expect(t, policy, want...)
		policyRequest{rights: everything, user: user, old: configMap("old")}.expect(t, policy)
	}
	policyRequest{object: strings.Replace(configMap("old"), "a: old", "a: new", 1), old: configMap("old")}.expect(t, policy)
}

// Who came first to servers is the controller's to say, and theirs who decide about names. Everybody else with a right to statuses
// writes what is not about that.
func TestArrivalsAreTheControllers(t *testing.T) {
	policy := compiledPolicy(t, basePolicies, "lockstep-arrivals")
	const head = "{metadata: {namespace: dns, name: x}, "
	const none, other, empty = head + "status: {serial: 1}}", head + "status: {arrivals: {hosts: []}}}", head + "spec: {}}"
	const some = head + "status: {arrivals: {hosts: [{host: cluster/shared, since: '2026'}]}}}"
	const asks, asksMore = head + "status: {dnssec: {delegation: {parents: [a]}}}}", head + "status: {dnssec: {delegation: {parents: [a, b]}}}}"
	for name, c := range map[string]policyRequest{
		"added": {object: some, old: none}, "changed": {object: other, old: some}, "removed": {object: none, old: some}, "with the first status": {object: some, old: empty},
		"asks": {object: asks, old: none}, "asks for more": {object: asksMore, old: asks}, "asks no more": {object: head + "status: {dnssec: {}}}", old: asks},
		"a controller elsewhere": {user: lookalike, object: some, old: none}, "the fleet manager": {user: fleetUser, object: some, old: none},
	} {
		t.Run(name, func(t *testing.T) {
			c.expect(t, policy, "status.arrivals of DNSZone dns/x says since when", "ZoneGrants")
		})
	}
	for name, c := range map[string]policyRequest{
		"by the controller": {user: controllerUser, object: some, old: none}, "asked by the controller": {user: controllerUser, object: asks, old: none}, "by whoever grants names": {rights: rights{"zonegrants": true}, object: some, old: none},
		"the rest of a status": {object: head + "status: {serial: 2}}", old: none}, "beside a delegation": {object: strings.Replace(asks, "{status: {", "{status: {serial: 2, ", 1), old: asks}, "beside arrivals": {object: strings.Replace(some, "{status: {", "{status: {serial: 2, ", 1), old: some},
	} {
		t.Run(name, func(t *testing.T) { c.expect(t, policy) })
	}
}

// What caches hold of an object's metadata is bounded, and what is too large already can become smaller.
func TestMetadataIsBounded(t *testing.T) {
	policy := compiledPolicy(t, basePolicies, "lockstep-metadata")
	with := func(metadata string) string {
		return "{metadata: {namespace: dns, name: x, " + metadata + "}, spec: {}}"
	}
	many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ") }
	lists := func(bytes int) string {
		return with("annotations: {bindy.firestoned.io/allow-zone-namespaces: " + strings.Repeat("x", bytes) + "}")
	}
	finalizers := with("finalizers: [" + many(500, "example.com/finalizer") + "]")
	owners := with("ownerReferences: [" + many(100, "{apiVersion: v1, kind: ConfigMap, name: "+strings.Repeat("x", 40)+", uid: u}") + "]")
	long := with("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: " + strings.Repeat("x", 5000) + ", uid: u}]")
	both := with("finalizers: [" + many(100, "example.com/finalizer") + "], annotations: {bindy.firestoned.io/paused: " + strings.Repeat("x", 2100) + "}")
	for name, c := range map[string]policyRequest{
		"annotations": {object: lists(5000)}, "finalizers": {object: finalizers}, "owners": {object: owners}, "a long owner": {object: long}, "together": {object: both},
		"finalizers of a stored one": {object: finalizers, old: with("labels: {}")}, "more of what is too much": {object: lists(5001), old: lists(5000)},
	} {
		t.Run(name, func(t *testing.T) { c.expect(t, policy, "bytes, and may have 4096: ") })
	}
	for name, c := range map[string]policyRequest{
		"none": {object: "{metadata: {namespace: dns, name: x}}"}, "a list": {object: lists(4000)}, "fewer of what is too much": {object: lists(5000), old: lists(5001)},
		"a label beside what is too much": {object: strings.Replace(lists(5000), "name: x,", "name: x, labels: {a: b},", 1), old: lists(5000)},
		"annotations of others":           {object: with("annotations: {example.com/large: " + strings.Repeat("x", 100_000) + ", bindy.firestoned.io/former-names: " + strings.Repeat("x", 10_000) + "}")},
		"our finalizer":                   {object: with("finalizers: [bindy.firestoned.io/finalizer]"), old: with("labels: {}")},
	} {
		t.Run(name, func(t *testing.T) { c.expect(t, policy) })
	}
}

// With the component, servers run images of the repositories that the administrator permits, by a tag or digest that stays.
func TestImagesOfPermittedRepositories(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	policy := compiledPolicy(t, imagePolicies, "lockstep-images")
	for image, want := range map[string][]string{
		"internetsystemsconsortium/bind9:9.18":           nil,
		"internetsystemsconsortium/bind9" + digest:       nil,
		"ghcr.io/firestoned/any/bindcar:v1":              nil,
		"internetsystemsconsortium/bind9":                {"a tag other than latest, or a digest"},
		"ghcr.io/firestoned/bindcar:latest":              {"image: ghcr.io/firestoned/bindcar:latest: what runs would change"},
		"ghcr.io/firestoned/bindcar@sha256:0":            {"or a digest"},
		"attacker/named:9.18":                            {"image: attacker/named:9.18: the administrator permits images of internetsystemsconsortium/bind9, ", "ValidatingAdmissionPolicy lockstep-images"},
		"internetsystemsconsortium/bind9evil:9.18":       {"the administrator permits"},
		"ghcr.io/firestoned.evil.test/bindcar:v1":        {"the administrator permits"},
		"ghcr.io:443/firestoned/bindcar":                 {"the administrator permits", "or a digest"},
		"docker.io/internetsystemsconsortium/bind9:9.20": nil,
	} {
		for _, at := range []string{"image: {image: %s}", "bindcarConfig: {image: %s}", "config: {bindcarConfig: {image: %s}}", "global: {bindcarConfig: {image: %s}}"} {
			object := "{metadata: {namespace: dns}, spec: {" + strings.Replace(at, "%s", `"`+image+`"`, 1) + "}}"
			policyRequest{object: object}.expect(t, policy, want...)
			policyRequest{object: object, old: object}.expect(t, policy)
		}
	}
	policyRequest{object: "{metadata: {namespace: dns}, spec: {version: latest}}"}.expect(t, policy, "version: latest")
	policyRequest{object: "{metadata: {namespace: dns}, spec: {version: '9.18'}}"}.expect(t, policy)
}
