package review

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// rights are what a user may create: "pods in dns"; a namespace of "" is all of them.
type rights map[string]bool

// Authorize implements authorizer.UnconditionalAuthorizer.
func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "create" && a.GetAPIGroup() == "" && r[a.GetResource()+" in "+a.GetNamespace()] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// compiledPolicy is the policy of manifests/base/policies.yaml as kube-apiserver compiles it.
func compiledPolicy(t *testing.T) validating.Validator {
	t.Helper()
	text, err := os.ReadFile("../../manifests/base/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := bytes.Cut(text, []byte("\n---\n"))
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict(document, &policy); err != nil {
		t.Fatal(err)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	withAuthorizer := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler.CompileAndStoreVariables(variables, withAuthorizer, environment.StoredExpressions)
	var rules, messages, none []cel.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: v.Expression, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	return validating.NewValidator(compiler.CompileCondition(rules, withAuthorizer, environment.StoredExpressions), nil,
		compiler.CompileCondition(none, withAuthorizer, environment.StoredExpressions),
		compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions), policy.Spec.FailurePolicy, nil)
}

// refusal returns what a user with rights is answered; empty when the object is accepted. old is empty for a creation.
func refusal(t *testing.T, policy validating.Validator, has rights, object, old string) string {
	t.Helper()
	operation := admission.Update
	if old == "" {
		operation = admission.Create
	}
	attributes := admission.NewAttributesRecord(objectOf(t, object), objectOf(t, old), schema.GroupVersionKind{}, "dns", "x",
		schema.GroupVersionResource{}, "", operation, nil, false, &user.DefaultInfo{Name: "jane"})
	versioned := &admission.VersionedAttributes{Attributes: attributes}
	versioned.VersionedObject.Set(attributes.GetObject())
	versioned.VersionedOldObject.Set(attributes.GetOldObject())
	var refusals []string
	for _, d := range policy.Validate(t.Context(), schema.GroupVersionResource{}, versioned, nil, nil, celconfig.RuntimeCELCostBudget, has).Decisions {
		if d.Action != validating.ActionAdmit {
			refusals = append(refusals, d.Message)
		}
	}
	return strings.Join(refusals, "\n")
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
		"a Service":                           {rights{"pods in dns": true}, `{metadata: {namespace: dns}, spec: {primary: {service: {spec: {externalIPs: [192.0.2.1]}}}}}`, "", "right to create services in namespace dns"},
		"a global cluster":                    {rights{"pods in lockstep-system": true}, global, "", "right to create pods in all namespaces"},
		"a global cluster, with the right":    {rights{"pods in ": true}, global, "", ""},
		"a global cluster with a namespace":   {rights{"pods in dns": true}, inNamespace, "", ""},
		"a global cluster that moves":         {rights{"pods in dns": true}, inNamespace, strings.Replace(inNamespace, "dns", "other", 1), ""},
		"a global cluster that moves to ours": {rights{"pods in dns": true}, global, inNamespace, "right to create pods in all namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusal(t, compiledPolicy(t), c.rights, c.object, c.old)
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
	"resources":       "quotas and limits hold for every pod",
	"emptyDir":        "scratch space of the pod",
	"imagePullPolicy": "of an image that counts itself",
	"accessModes":     "of a claim that is created",
}

// Every field of the specifications that has one of Kubernetes' own types, or names an image, a ConfigMap, a claim or a Secret, is
// known to the policy or harmless.
func TestPolicyKnowsEveryField(t *testing.T) {
	policy := compiledPolicy(t)
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
			if refusal(t, policy, rights{}, string(text), "") == "" {
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
		case target.PkgPath() == reflect.TypeFor[corev1.Pod]().PkgPath(), name == "image", name == "claimName",
			target == reflect.TypeFor[v1beta1.RNDCSecretRef](), target == reflect.TypeFor[v1beta1.ConfigMapRefs](), target == reflect.TypeFor[v1beta1.ServiceConfig]():
			paths = append(paths, path)
		case target.Kind() == reflect.Struct:
			paths = append(paths, sensitivePaths(target, path)...)
		}
	}
	return paths
}
