package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// facts are what the sentences in messages are compared with, as test/fault/checker/sentences.py reads them.
type facts struct {
	Pods     []string               `json:"pods"`
	Zones    map[string]zoneFacts   `json:"zones"`
	Objects  map[string]objectFacts `json:"objects"`
	Messages [][2]string            `json:"messages"`
}

type zoneFacts struct {
	Object     string   `json:"object"`
	Pods       []string `json:"pods"`
	Primaries  int      `json:"primaries"`
	Serial     uint32   `json:"serial"`
	Declared   int      `json:"declared"`
	Programmed int      `json:"programmed"`
}

type objectFacts struct {
	Zones []string `json:"zones"`
	// Values are name and type, and TTL, of each declaration.
	Values [][2]any `json:"values"`
}

// sentenceProblems asks of each number and name in the messages of a fleet at rest whether it is so. It is the judge of the fault run that
// answers, which knows nothing of the code that makes the messages.
func (w *randomWorld) sentenceProblems(ctx context.Context, zones map[string]zoneFacts, declared map[*zoneState][]*model.Declaration) ([]string, error) {
	servers, err := kube.Servers(ctx, w.client, w.namespace)
	if err != nil {
		return nil, err
	}
	f := facts{Zones: zones, Objects: w.objectFacts(declared)}
	for pod := range servers {
		f.Pods = append(f.Pods, pod)
	}
	for name, z := range zones {
		z.Pods = f.Pods
		for _, pod := range f.Pods {
			if strings.Contains(pod, "-primary-") {
				z.Primaries++
			}
		}
		zones[name] = z
	}
	if f.Messages, err = w.messages(ctx); err != nil {
		return nil, err
	}
	return askJudge(w, f)
}

func (w *randomWorld) objectFacts(declared map[*zoneState][]*model.Declaration) map[string]objectFacts {
	all := map[string]objectFacts{}
	for _, o := range w.objects {
		all[strings.ToLower(o.Kind)+"."+o.Name] = objectFacts{Zones: []string{}, Values: [][2]any{}}
	}
	for _, z := range w.zones {
		own := objectFacts{Zones: []string{z.dnsName()}, Values: [][2]any{{z.Name + " NS", z.TTL}}}
		for server := range z.Addresses {
			own.Values = append(own.Values, [2]any{server + " A", z.TTL})
		}
		all["dnszone."+z.Object] = own
	}
	for z, ds := range declared {
		for _, d := range ds {
			key := strings.ToLower(d.By.Kind) + "." + d.By.Name
			o := all[key]
			if z != nil {
				if !slices.Contains(o.Zones, z.dnsName()) {
					o.Zones = append(o.Zones, z.dnsName())
				}
				o.Values = append(o.Values, [2]any{strings.ToLower(d.Name) + " " + d.Type, d.TTL})
			}
			all[key] = o
		}
	}
	return all
}

// messages are those of all stored conditions and, of what is in sync, of the SyncStatuses, each with the kind and name of its object.
func (w *randomWorld) messages(ctx context.Context) (all [][2]string, err error) {
	add := func(name string, conditions []metav1.Condition) {
		for _, c := range conditions {
			all = append(all, [2]string{name, c.Message})
		}
	}
	there, err := w.stored(ctx)
	if err != nil {
		return nil, err
	}
	for key, o := range there {
		kind, name, _ := strings.Cut(key, "/")
		switch o := o.(type) {
		case *v1alpha1.DNSEndpoint:
			add(strings.ToLower(kind)+"."+name, o.Status.Conditions)
		case v1beta1.Record:
			add(strings.ToLower(kind)+"."+name, o.GetRecordStatus().Conditions)
		}
	}
	var zones v1beta1.DNSZoneList
	var instances v1beta1.Bind9InstanceList
	var clusters v1beta1.Bind9ClusterList
	var statuses syncv1.SyncStatusList
	for _, list := range []client.ObjectList{&zones, &instances, &clusters, &statuses} {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return nil, err
		}
	}
	for _, z := range zones.Items {
		add("dnszone."+z.Name, z.Status.Conditions)
	}
	for _, i := range instances.Items {
		add("bind9instance."+i.Name, i.Status.Conditions)
	}
	for _, c := range clusters.Items {
		add("bind9cluster."+c.Name, c.Status.Conditions)
	}
	for _, s := range statuses.Items {
		if !s.Status.InSync {
			continue
		}
		add(s.Name, s.Status.Conditions)
		for _, row := range s.Servers {
			all = append(all, [2]string{s.Name, row.Message})
		}
	}
	return all, nil
}

// askJudge returns what is not so by the judge of the fault run. Debian's Python is the one that it is written for.
func askJudge(w *randomWorld, f facts) ([]string, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(w.TempDir(), "facts.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("/usr/bin/python3", "-B", filepath.Join(kube.Root(w), "test/fault/checker/sentences.py"), file)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("judging the messages in %s: %w", file, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}
