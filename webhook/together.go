package webhook

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Judgement is what would be said about an object when it is stored. With problems it would be refused.
type Judgement struct {
	Problems field.ErrorList
	Warnings []string
}

// JudgeTogether judges objects as if they were all there is, and each were applied after those before it: of two that
// contradict each other the later one is told, unless their creationTimestamps say otherwise. There is one judgement for
// each object, an empty one for kinds that are judged by their schema alone. The objects get the timestamps and UIDs that
// they lack.
func JudgeTogether(ctx context.Context, all []client.Object) ([]Judgement, error) {
	age(all)
	objects := newGiven(all...)
	judgements := make([]Judgement, len(all))
	for i, o := range all {
		v, err := judgeStored(ctx, objects, o)
		if err != nil {
			return nil, fmt.Errorf("judging %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		judgements[i] = Judgement{v.problems, v.warnings}
	}
	return judgements, nil
}

// judgeStored judges an object beside all others as if nothing in it had changed, so that only it is told, not what it
// prevails over.
func judgeStored(ctx context.Context, objects objects, o client.Object) (verdict, error) {
	switch o := o.(type) {
	case v1beta1.Record:
		return recordReview{objects}.judge(ctx, o, o)
	case *v1beta1.DNSZone:
		return zoneReview{objects}.judge(ctx, o, nil)
	case *v1beta1.Bind9Instance:
		return instanceReview{objects}.judge(ctx, o, nil)
	case *v1alpha1.DNSEndpoint:
		return endpointReview{objects}.judge(ctx, o, nil)
	}
	return verdict{}, nil
}

// age makes every object younger than those before it, and than all that have a timestamp.
func age(all []client.Object) {
	latest := time.Unix(0, 0)
	for _, o := range all {
		if t := o.GetCreationTimestamp(); t.After(latest) {
			latest = t.Time
		}
	}
	for i, o := range all {
		if t := o.GetCreationTimestamp(); t.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(latest.Add(time.Duration(i+1) * time.Second)))
		}
		if o.GetUID() == "" {
			o.SetUID(types.UID(fmt.Sprintf("%09d", i)))
		}
	}
}
