package images

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/lockstep-dns/lockstep/release/oci"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// Load imports the images' archives into the containerd at the socket, where
// the kubelet looks for them. What is there already is left alone.
func (b Builder) Load(ctx context.Context, p *progress.Printer, socket string, images []Recipe) error {
	var errs []error
	for _, i := range images {
		errs = append(errs, b.loadImage(ctx, p, socket, i))
	}
	return errors.Join(errs...)
}

func (b Builder) loadImage(ctx context.Context, p *progress.Printer, socket string, i Recipe) error {
	want, ok, err := oci.Inspect(b.archivePath(i))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("image %s has not been built: %s is missing; run `make images`", i.name, b.archivePath(i))
	}
	have, err := loadedDigest(ctx, socket, i.name)
	if err != nil || have == want.Digest {
		return err
	}
	return p.Phase("loading image "+i.name, func(*progress.Note) error {
		_, err := runCtr(ctx, socket, "images", "import", b.archivePath(i))
		return err
	})
}

// loadedDigest returns the digest of the image of that name in containerd, or "".
func loadedDigest(ctx context.Context, socket, name string) (string, error) {
	out, err := runCtr(ctx, socket, "images", "list", "name=="+name)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) { // REF TYPE DIGEST SIZE …
		if f := strings.Fields(line); len(f) > 2 && f[0] == name {
			return f[2], nil
		}
	}
	return "", nil
}

func runCtr(ctx context.Context, socket string, args ...string) (string, error) {
	args = append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)
	out, err := exec.CommandContext(ctx, "ctr", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
