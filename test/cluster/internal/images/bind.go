package images

import (
	"context"
	"errors"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/oci"
)

func (b Builder) bind(ctx context.Context) (oci.Image, error) {
	return oci.Image{}, errors.New("not yet")
}
