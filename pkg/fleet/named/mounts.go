package named

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// ownVolumes are the names of volumes that a user's cannot have.
var ownVolumes = []string{volumeConfig, volumeConfigSource, volumeKeys, volumeCache, volumeRun, volumeAPIAccess, volumeKeyNames, volumeTLS}

// remedies say, by the place of a mount of ours, what to do in place of mounting something there.
var remedies = map[string]string{
	layout.ConfigDir: "replace named.conf, named.conf.options and named.conf.zones with configMapRefs, and mount other files elsewhere, such as at /srv/bind, where these can name them",
	layout.CacheDir:  "use a volume of your own by storage.storageType: persistentVolumeClaim and storage.persistentVolumeClaim.claimName",
	layout.ZonesDir:  "it has the zones of DNSZones: mount files of your own elsewhere, such as at /srv/bind",
}

// checkDistinctMounts refuses volumes of the same name and mounts at the same place, which server-side apply would not report in
// words that a user understands, and mounts that would hide what the pod itself has. claimed says that the volume of a claim is there
// beside those listed.
func checkDistinctMounts(volumes []*corev1ac.VolumeApplyConfiguration, claimed bool, containers ...*corev1ac.ContainerApplyConfiguration) error {
	names := map[string]bool{}
	if claimed {
		names[volumeCache] = true
	}
	for _, v := range volumes {
		if names[*v.Name] {
			return fmt.Errorf("volumes: there is another volume %q: give yours another name; the pods' own are %s", *v.Name, strings.Join(ownVolumes, ", "))
		}
		names[*v.Name] = true
	}
	for _, c := range containers {
		if err := checkMounts(c, names); err != nil {
			return err
		}
	}
	return nil
}

// checkMounts checks a container's mounts, of which some are ours.
func checkMounts(c *corev1ac.ContainerApplyConfiguration, volumes map[string]bool) error {
	field := "volumeMounts"
	if *c.Name == containerBindcar {
		field = "bindcarConfig.volumeMounts"
	}
	taken := map[string]string{}
	for _, m := range c.VolumeMounts {
		if !volumes[*m.Name] {
			return fmt.Errorf("%s: container %s mounts volume %q, which there is not: add it to %s, or remove the mount",
				field, *c.Name, *m.Name, strings.TrimSuffix(field, "Mounts")+"s")
		}
		if err := checkPlace(*m.Name, placeOf(*m.MountPath), taken); err != nil {
			return fmt.Errorf("%s: volume %q cannot be mounted at %s in container %s: %w", field, *m.Name, *m.MountPath, *c.Name, err)
		}
	}
	return nil
}

// placeOf returns where a mount is: images have /run at /var/run as well.
func placeOf(mountPath string) string {
	at := path.Clean("/" + mountPath)
	if within, ok := strings.CutPrefix(at+"/", "/var/run/"); ok {
		at = path.Clean("/run/" + within)
	}
	return at
}

// checkPlace says why a volume cannot be mounted at a place, and what to do, and adds the place to those that are taken.
func checkPlace(volume, at string, taken map[string]string) error {
	if earlier, ok := taken[at]; ok {
		return fmt.Errorf("there is another mount at %s, of volume %q: %s", at, earlier, remedyFor(at))
	}
	taken[at] = volume
	if own := hiddenPlace(volume, at); own != "" {
		return fmt.Errorf("it would hide what the pod itself has in %s: %s", own, remedyFor(own))
	}
	return nil
}

func remedyFor(place string) string {
	return cmp.Or(remedies[place], "mount it elsewhere, such as at /srv/bind")
}

// ownPlaces are where the pod's own files are, and the volumes that hold them.
var ownPlaces = map[string]string{
	layout.ConfigDir: volumeConfig, layout.KeyDir: volumeKeys, layout.CacheDir: volumeCache, layout.ZonesDir: volumeCache, layout.RunDir: volumeRun, layout.CertificateDir: volumeTLS, layout.KeyNamesDir: volumeKeyNames,
	apiAccessDir: volumeAPIAccess, lockstepBinary: "",
}

// hiddenPlace returns which of the pod's own places a mount would cover, from above or from within; empty for none. What is beside the
// zones within layout.CacheDir is the user's.
func hiddenPlace(volume, at string) string {
	isWithin := func(inner, outer string) bool {
		return strings.HasPrefix(inner+"/", strings.TrimSuffix(outer, "/")+"/")
	}
	if own, ok := ownPlaces[at]; ok && volume == own {
		return ""
	}
	for _, own := range slices.Sorted(maps.Keys(ownPlaces)) {
		covers := isWithin(own, at) || isWithin(at, own) && own != layout.CacheDir
		if covers && volume != ownPlaces[own] {
			return own
		}
	}
	return ""
}
