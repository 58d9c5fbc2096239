package gitops

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/test/docs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// luaHealth are health checks by group and kind, in Lua. It implements health.HealthOverride as Argo CD does.
type luaHealth map[string]struct {
	Lua string `json:"health.lua"`
}

// guideHealth returns the health checks of docs/guides/gitops.md.
func guideHealth(t *testing.T) luaHealth {
	t.Helper()
	for _, d := range docs.Read(t) {
		if d.Path != "docs/guides/gitops.md" {
			continue
		}
		for _, b := range d.Blocks {
			var config struct{ Data map[string]string }
			if err := yaml.Unmarshal([]byte(b.Text), &config); err != nil || config.Data["resource.customizations"] == "" {
				continue
			}
			var checks luaHealth
			if err := yaml.Unmarshal([]byte(config.Data["resource.customizations"]), &checks); err != nil {
				t.Fatal(err)
			}
			return checks
		}
	}
	t.Fatal("the guide has no customizations of Argo CD")
	return nil
}

// GetResourceHealth implements health.HealthOverride.
func (c luaHealth) GetResourceHealth(o *unstructured.Unstructured) (*health.HealthStatus, error) {
	gvk := o.GroupVersionKind()
	check, known := c[gvk.Group+"/"+gvk.Kind]
	if !known {
		if check, known = c[gvk.Group+"/*"]; !known {
			return nil, nil
		}
	}
	// The libraries and the time that Argo CD permits.
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, fmt.Errorf("opening library %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", luaValue(l, o.Object))
	if err := l.DoString(check.Lua); err != nil {
		return nil, fmt.Errorf("running the health check of %s: %w", gvk.Kind, err)
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the health check of %s returns %s", gvk.Kind, l.Get(-1).Type())
	}
	return &health.HealthStatus{
		Status: health.HealthStatusCode(answer.RawGetString("status").String()), Message: answer.RawGetString("message").String(),
	}, nil
}

// luaValue converts what JSON has.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		list := l.NewTable()
		for _, item := range v {
			list.Append(luaValue(l, item))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// The health check of the guide says of each state what kstatus says of it.
func TestHealth(t *testing.T) {
	kube.WithoutCluster(t)
	checks := guideHealth(t)
	for name, tc := range map[string]struct{ object, status, message string }{
		"without a status":   {"{kind: DNSZone, metadata: {generation: 1}}", "Progressing", "not looked at yet"},
		"with its default":   {"{kind: DNSZone, metadata: {generation: 1}, status: {observedGeneration: -1}}", "Progressing", "not looked at yet"},
		"ready":              {"{kind: DNSZone, metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', message: all}]}}", "Healthy", "all"},
		"ready before":       {"{kind: DNSZone, metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', message: all}]}}", "Progressing", "not looked at yet"},
		"not ready":          {"{kind: ARecord, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'False', reason: NotSelected, message: no zone}]}}", "Progressing", "no zone"},
		"for a person":       {"{kind: ARecord, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'False', message: a}, {type: Stalled, status: 'True', reason: Conflict, message: an alias}]}}", "Degraded", "an alias"},
		"stalled before":     {"{kind: ARecord, metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: 'True', message: an alias}]}}", "Progressing", "not looked at yet"},
		"a grant":            {"{kind: ZoneGrant, metadata: {generation: 1}}", "Healthy", ""},
		"an endpoint":        {"{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True', message: all}]}}", "Healthy", "all"},
		"an unseen endpoint": {"{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {generation: 1}}", "Progressing", "not looked at yet"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &o.Object); err != nil {
				t.Fatal(err)
			}
			if o.GetAPIVersion() == "" {
				o.SetAPIVersion("bindy.firestoned.io/v1beta1")
			}
			got, err := checks.GetResourceHealth(o)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Status) != tc.status || got.Message != tc.message {
				t.Errorf("%+v, want %s: %s", got, tc.status, tc.message)
			}
		})
	}
}
