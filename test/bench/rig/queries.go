package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// Questions is what a named was asked since its start, by opcode.
type Questions struct {
	Query  float64 `json:"QUERY"`
	Notify float64 `json:"NOTIFY"`
	Update float64 `json:"UPDATE"`
}

// CountQuestions asks the statistics channel of every server and adds up what they say. Named serves it inside the pods only,
// so "kubectl port-forward" leads there.
func (r *Rig) CountQuestions(ctx context.Context) (Questions, error) {
	var total Questions
	for _, pod := range r.pods {
		one, err := r.questionsOfPod(ctx, pod.Name)
		if err != nil {
			return total, fmt.Errorf("statistics of pod %s: %w", pod.Name, err)
		}
		total.Query += one.Query
		total.Notify += one.Notify
		total.Update += one.Update
	}
	return total, nil
}

var forwardedAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func (r *Rig) questionsOfPod(ctx context.Context, pod string) (q Questions, err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "kubectl", "--namespace", r.Namespace, "port-forward", "pod/"+pod, fmt.Sprintf(":%d", layout.StatisticsPort))
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return q, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return q, err
	}
	defer func() { _ = cmd.Wait() }()
	defer cancel()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return q, err
	}
	address := forwardedAddress.FindString(line)
	if address == "" {
		return q, fmt.Errorf("kubectl port-forward says %q", line)
	}
	page, err := fetchPage(ctx, "http://"+address+"/json/v1/server")
	if err != nil {
		return q, err
	}
	var answer struct {
		Opcodes Questions `json:"opcodes"`
	}
	if err := json.Unmarshal(page, &answer); err != nil {
		return q, err
	}
	return answer.Opcodes, nil
}
