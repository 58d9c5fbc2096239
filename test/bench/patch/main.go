// Command patch measures what resolvers notice of a patch release of BIND: it gives the fleet manager other images, and counts the queries that nobody
// answered while all servers were replaced. By default these are the same images under their full names, which replaces the servers like any others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
	"github.com/lockstep-dns/lockstep/test/load"
)

const (
	system  = "lockstep-system"
	imageTo = "--bind9-image="
	object  = "patch"
	zone    = "patch.example"
	address = "192.0.2.1"
)

var (
	images = flag.String("images", "docker.io/library/lockstep-bind9:9.20,9.18=docker.io/library/lockstep-bind9:9.18", "what --bind9-image of the fleet manager becomes")
	limit  = flag.Duration("limit", 10*time.Minute, "how long the replacement may take")
)

func main() { rig.Main("patch", measurePatch) }

func measurePatch(ctx context.Context, r *rig.Rig) (err error) {
	want, err := releases.ParseImages(*images)
	if err != nil {
		return fmt.Errorf("-images: %w", err)
	}
	name := "www." + zone + "."
	if err := r.CreateZone(ctx, object, zone); err != nil {
		return err
	}
	for _, o := range r.DeclareRecords(rig.Objects, object, zone, []rig.Address{{Name: name, IP: address}}) {
		if err := r.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	if _, err := r.WaitAnswered(ctx, name, address); err != nil {
		return err
	}
	servers, err := serviceAddresses(ctx, r)
	if err != nil {
		return err
	}
	asked := load.Start(ctx, servers, load.Question{Name: name, Want: address})
	began := time.Now()
	restore, err := setImages(ctx, r, *images)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore(context.WithoutCancel(ctx))) }()
	if err := rig.PollUntil(ctx, *limit, time.Second, func() error { return checkReplaced(ctx, r, want.Standard()) }); err != nil {
		return err
	}
	took := time.Since(began)
	result := asked.End()
	fmt.Printf("all servers replaced in %s: %s\n", took.Round(time.Second), result)
	if err := result.Err(); err != nil {
		fmt.Println(err)
	}
	what := fmt.Sprintf("all that resolvers asked while %d servers were replaced in %.0f s", len(servers), took.Seconds())
	r.AddResult("patch", float64(len(result.Lost)+len(result.Wrong)), float64(result.Queries), "queries", what)
	return nil
}

// serviceAddresses returns where the Services of the rig's servers answer, by their names.
func serviceAddresses(ctx context.Context, r *rig.Rig) (map[string]string, error) {
	var services corev1.ServiceList
	if err := r.Client.List(ctx, &services, client.InNamespace(r.Namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		return nil, err
	}
	servers := map[string]string{}
	for _, s := range services.Items {
		servers[s.Name] = net.JoinHostPort(s.Spec.ClusterIP, "53")
	}
	return servers, nil
}

// setImages changes the flag of the fleet manager. The returned function changes it back.
func setImages(ctx context.Context, r *rig.Rig, images string) (restore func(context.Context) error, err error) {
	var former []string
	if err := editArguments(ctx, r, func(args []string) []string {
		former = slices.Clone(args)
		args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, imageTo) })
		return append(args, imageTo+images)
	}); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return editArguments(ctx, r, func([]string) []string { return former })
	}, nil
}

func editArguments(ctx context.Context, r *rig.Rig, edit func([]string) []string) error {
	var fleet appsv1.Deployment
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: system, Name: "lockstep-fleet"}, &fleet); err != nil {
		return err
	}
	before := client.MergeFrom(fleet.DeepCopy())
	container := &fleet.Spec.Template.Spec.Containers[0]
	container.Args = edit(container.Args)
	return r.Client.Patch(ctx, &fleet, before)
}

// checkReplaced returns an error until all servers run the image.
func checkReplaced(ctx context.Context, r *rig.Rig, image string) error {
	var sets appsv1.StatefulSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	for _, set := range sets.Items {
		s := set.Status
		if got := set.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("%s has the image %s", set.Name, got)
		}
		if s.ObservedGeneration < set.Generation || s.UpdatedReplicas != *set.Spec.Replicas || s.AvailableReplicas != *set.Spec.Replicas {
			return fmt.Errorf("the pods of %s are not replaced yet", set.Name)
		}
	}
	return nil
}
