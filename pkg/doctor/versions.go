package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// minKubernetes is the oldest version of Kubernetes that Lockstep works with (docs/install.md).
var minKubernetes = version.MustParseGeneric("1.33")

func judgeKubernetes(f *Facts) Finding {
	if f.Server.Err != nil {
		return unread(f.Server.Request, f.Server.Err)
	}
	running, err := version.ParseGeneric(f.Server.Value.Version)
	switch {
	case err != nil:
		return warning("", "its version %q cannot be read", f.Server.Value.Version)
	case running.LessThan(minKubernetes):
		return failure("upgrade Kubernetes", "it is %s, and Lockstep needs %s or later", f.Server.Value.Version, minKubernetes)
	}
	return ok("%s", f.Server.Value.Version)
}

// imagesOf has the users of each image of Lockstep: the components, and sidecars.
func imagesOf(all []appsv1.Deployment) map[string][]string {
	users := map[string][]string{}
	for _, d := range all {
		if !slices.Contains(deploymentNames, d.Name) {
			continue
		}
		own := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return d.Name == "lockstep-"+c.Name })
		if own < 0 {
			continue
		}
		c := d.Spec.Template.Spec.Containers[own]
		users[c.Image] = append(users[c.Image], c.Name)
		if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "LOCKSTEP_IMAGE" }); i >= 0 {
			image := imageOfSidecars(c.Env[i].Value, c.Args)
			users[image] = append(users[image], "sidecars")
		}
	}
	return users
}

// imageOfSidecars returns the image of Lockstep that sidecars belong to, which the fleet manager has in its environment; that of sidecars if
// its arguments name another one, with another tag.
func imageOfSidecars(lockstep string, args []string) string {
	for _, arg := range args {
		image, named := strings.CutPrefix(arg, "--bindcar-image=")
		if tag := tagOf(image); named && tag != "" && tagOf(lockstep) != "" && tag != tagOf(lockstep) {
			return image
		}
	}
	return lockstep
}

// tagOf returns the tag of an image; empty if it has none.
func tagOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	return tag
}

// judgeImages compares the images of the components.
func judgeImages(f *Facts) Finding {
	users := imagesOf(f.Deployments.Value)
	images := slices.Sorted(maps.Keys(users))
	switch {
	case f.Deployments.Err != nil:
		return unread(f.Deployments.Request, f.Deployments.Err)
	case len(images) == 0:
		return skippedFor("no Deployment has been found")
	case len(images) == 1:
		return ok("all components run %s, and sidecars the one that goes with it", images[0])
	}
	var differ []string
	for _, image := range images {
		differ = append(differ, fmt.Sprintf("%s (%s)", image, strings.Join(users[image], ", ")))
	}
	return warning("give all of them one version: docs/install.md shows the overlay that does", "different images: %s", joinSome(differ, "; "))
}

// judgePlugin compares the plugin's version with the tag of the controller's image, if both are those of releases.
func judgePlugin(f *Facts) Finding {
	if f.Deployments.Err != nil {
		return unread(f.Deployments.Request, f.Deployments.Err)
	}
	var tag string
	for image, users := range imagesOf(f.Deployments.Value) {
		if slices.Contains(users, "controller") {
			tag = tagOf(image)
		}
	}
	installed, err := version.ParseSemantic(tag)
	plugin, pluginErr := version.ParseSemantic(f.Plugin)
	switch {
	case err != nil || pluginErr != nil:
		return ok("%s; the image's tag is %q: only releases can be compared", f.Plugin, tag)
	case !installed.EqualTo(plugin):
		return warning("install the plugin of version "+tag, "it is %s, and %s is installed", f.Plugin, tag)
	}
	return ok("%s, as is installed", f.Plugin)
}

// Clocks may differ by so much before it is worth saying: what compares them has a resolution of a second.
const maxSkew = 5 * time.Second

// judgeClocks compares the clocks of kube-apiserver, of this machine, and of the nodes that leaders run on.
func judgeClocks(f *Facts) Finding {
	const remedy = "correct the clock that is wrong (NTP): certificates and TSIG depend on clocks"
	if f.Server.Err != nil {
		return unread(f.Server.Request, f.Server.Err)
	}
	if f.Server.Value.Clock.IsZero() {
		return skippedFor("kube-apiserver does not say what time it is")
	}
	skew := f.Server.Value.Local.Sub(f.Server.Value.Clock)
	if skew.Abs() > maxSkew {
		return warning(remedy, "the clocks here and at kube-apiserver differ by %s", skew.Abs().Round(time.Second))
	}
	for _, l := range f.Leases {
		if at := l.Value.Spec.RenewTime; l.Err == nil && at != nil && at.Sub(f.Now) > maxSkew {
			return warning(remedy, "the clock of the leader of %s is %s ahead of kube-apiserver's", l.Value.Name, at.Sub(f.Now).Round(time.Second))
		}
	}
	return ok("kube-apiserver's, this machine's and the leaders' agree to %s", maxSkew)
}

func formatTime(at *metav1.MicroTime) string {
	if at == nil {
		return "it was made"
	}
	return at.UTC().Format(time.RFC3339)
}

// unreadLease is unread for a lease, which does not exist before somebody has held it.
func unreadLease(request string, err error) Finding {
	if apierrors.IsNotFound(err) {
		return failure("look at the deployments above", "could not %s: nobody has ever held it", request)
	}
	return unread(request, err)
}
