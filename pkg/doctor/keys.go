package doctor

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// rotationGrace is how long the rotation of a key may take: every server has to know the new one first, and the former one is kept
// for a while.
const rotationGrace = time.Hour

// judgeKeys judges the Secrets that objects name, as far as the user may read them.
func judgeKeys(f *Facts) Finding {
	if len(f.Keys) == 0 {
		return f.nothingOf("DNSProvider", "no object names a Secret")
	}
	var bad []string
	var remedy, denied string
	read := 0
	for _, k := range f.Keys {
		problem := k.Value.Problem
		switch {
		case apierrors.IsForbidden(k.Err):
			denied = k.Request
			continue
		case apierrors.IsNotFound(k.Err):
			problem = fmt.Sprintf("Secret %s does not exist", k.Value.Secret)
		case k.Err != nil:
			return unread(k.Request, k.Err)
		}
		if read++; problem != "" {
			bad = append(bad, fmt.Sprintf("%s of %s", problem, k.Value.Owner))
			remedy = fmt.Sprintf("create or correct it (docs/reference/providers.md, docs/reference/fleet.md): kubectl -n %s describe secret %s", k.Value.Secret.Namespace, k.Value.Secret.Name)
		}
	}
	switch {
	case len(bad) > 0:
		return failure(remedy, "%s", joinSome(bad, "; "))
	case denied != "" && read == 0:
		return skippedFor("you may not " + denied)
	case denied != "":
		return ok("%s exist and can be used; you may not read the others", status.CountOf(read, "Secret"))
	}
	return ok("%s exist and can be used", status.CountOf(read, "Secret"))
}
