package named

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// Names of containers.
const (
	containerInit    = "init"
	containerNamed   = "named"
	containerBindcar = "bindcar"
)

// lastSeconds is how long named goes on answering when its pod is terminated: until no Service sends it queries any more.
const lastSeconds = 3

// lockstepBinary is where our own image has its one file.
const lockstepBinary = "/lockstep"

// initContainer copies the configuration: whatever its ConfigMaps become, a pod runs with the one that it was made for, as named reads its
// files again when it restarts, or has other keys.
func (w Workload) initContainer(configChecksum string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(containerInit).
		WithImage(w.bindcarImage()).
		WithImagePullPolicy(pullPolicy(w.bindcarConfig().ImagePullPolicy)).
		WithCommand(lockstepBinary, "bindcar", "init").
		WithArgs("--rndc-key-file="+layout.ControlKeyFile, "--rndc-key-algorithm="+w.keyAlgorithm(), "--zones-dir="+layout.ZonesDir,
			"--config-source-dir="+layout.ConfigSourceDir, "--config-dir="+layout.ConfigDir, "--config-checksum="+configChecksum).
		WithSecurityContext(restrictedContext()).
		WithResources(resourceRequests("10m", "32Mi", "64Mi")).
		WithVolumeMounts(volumeMount(volumeCache, layout.CacheDir, false), volumeMount(volumeRun, layout.RunDir, false),
			volumeMount(volumeConfigSource, layout.ConfigSourceDir, true), volumeMount(volumeConfig, layout.ConfigDir, false))
}

func (w Workload) namedContainer() (*corev1ac.ContainerApplyConfiguration, error) {
	resources, err := w.resources()
	if err != nil {
		return nil, fmt.Errorf("resources: %w", err)
	}
	container := corev1ac.Container().
		WithName(containerNamed).
		WithImage(w.bind9Image()).
		WithImagePullPolicy(pullPolicy(w.imageConfig().ImagePullPolicy)).
		// Until named has read its configuration, -L decides where it logs: a mistake in a user's file would else be lost.
		WithCommand("named", "-f", "-L", "/dev/stderr", "-c", layout.ConfigFile).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithPorts(
			corev1ac.ContainerPort().WithName(portDNS).WithContainerPort(serving.Port).WithProtocol(corev1.ProtocolUDP),
			corev1ac.ContainerPort().WithName(portDNSTCP).WithContainerPort(serving.Port).WithProtocol(corev1.ProtocolTCP)).
		WithSecurityContext(restrictedContext()).
		WithResources(resources).
		WithStartupProbe(tcpProbe(1, 120)).
		WithReadinessProbe(tcpProbe(1, 2)).
		WithLivenessProbe(tcpProbe(10, 3)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().WithSleep(corev1ac.SleepAction().WithSeconds(lastSeconds)))).
		WithVolumeMounts(volumeMount(volumeConfig, layout.ConfigDir, true), volumeMount(volumeKeys, layout.KeyDir, true), volumeMount(volumeCache, layout.CacheDir, false), volumeMount(volumeRun, layout.RunDir, false))
	for _, m := range firstSlice(w.Instance.Spec.VolumeMounts, w.Cluster.VolumeMounts) {
		extra, err := toApply[corev1ac.VolumeMountApplyConfiguration](m)
		if err != nil {
			return nil, fmt.Errorf("volumeMounts: %w", err)
		}
		container.WithVolumeMounts(extra)
	}
	return container, nil
}

func (w Workload) bindcarContainer() (*corev1ac.ContainerApplyConfiguration, error) {
	config := w.bindcarConfig()
	container := corev1ac.Container().
		WithName(containerBindcar).
		WithImage(w.bindcarImage()).
		WithImagePullPolicy(pullPolicy(config.ImagePullPolicy)).
		WithCommand(lockstepBinary, "bindcar").
		WithArgs(w.bindcarArgs()...).
		WithPorts(
			corev1ac.ContainerPort().WithName(portBindcar).WithContainerPort(layout.SidecarPort).WithProtocol(corev1.ProtocolTCP),
			corev1ac.ContainerPort().WithName(portHealth).WithContainerPort(layout.HealthPort).WithProtocol(corev1.ProtocolTCP)).
		WithSecurityContext(restrictedContext()).
		WithResources(resourceRequests("10m", "32Mi", "512Mi")).
		WithReadinessProbe(healthProbe("/api/v1/ready", 1, 2)).
		WithLivenessProbe(healthProbe("/api/v1/health", 10, 3)).
		WithVolumeMounts(volumeMount(volumeCache, layout.CacheDir, false), volumeMount(volumeRun, layout.RunDir, true),
			volumeMount(volumeTLS, layout.CertificateDir, true), volumeMount(volumeKeyNames, layout.KeyNamesDir, true))
	if w.needsAPIAccess() {
		container.WithVolumeMounts(volumeMount(volumeAPIAccess, apiAccessDir, true))
	}
	if config.Resources != nil {
		resources, err := toApply[corev1ac.ResourceRequirementsApplyConfiguration](config.Resources)
		if err != nil {
			return nil, fmt.Errorf("bindcarConfig.resources: %w", err)
		}
		container.WithResources(resources)
	}
	for _, m := range config.VolumeMounts {
		extra, err := toApply[corev1ac.VolumeMountApplyConfiguration](m)
		if err != nil {
			return nil, fmt.Errorf("bindcarConfig.volumeMounts: %w", err)
		}
		container.WithVolumeMounts(extra)
	}
	for _, env := range config.EnvVars {
		variable, err := toApply[corev1ac.EnvVarApplyConfiguration](env)
		if err != nil {
			return nil, fmt.Errorf("bindcarConfig.envVars: %w", err)
		}
		container.WithEnv(variable)
	}
	return container, nil
}

// bindcarArgs has the sidecar listen on its usual port, where the controller expects it, and on the one asked for.
func (w Workload) bindcarArgs() []string {
	args := []string{
		"--listen=:" + strconv.Itoa(layout.SidecarPort),
		"--tls-cert-file=" + layout.CertificateDir + "/" + corev1.TLSCertKey,
		"--tls-private-key-file=" + layout.CertificateDir + "/" + corev1.TLSPrivateKeyKey,
		"--client-ca-file=" + layout.CertificateDir + "/" + "ca.crt",
		"--health-address=:" + strconv.Itoa(layout.HealthPort),
		"--rndc-address=127.0.0.1:" + strconv.Itoa(layout.ControlPort),
		"--rndc-key-file=" + layout.ControlKeyFile,
		"--statistics-url=http://127.0.0.1:" + strconv.Itoa(layout.StatisticsPort),
		"--zones-dir=" + layout.ZonesDir,
		"--key-names-dir=" + layout.KeyNamesDir,
	}
	if port := w.bindcarConfig().Port; port != 0 && port != layout.SidecarPort {
		args = append(args, "--listen=:"+strconv.Itoa(int(port)))
	}
	if level := w.bindcarConfig().LogLevel; level != "" {
		args = append(args, "--log-level="+level)
	}
	return args
}

// restrictedContext returns what Pod Security Standards' level "restricted" asks of a container, and a read-only root.
func restrictedContext() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithRunAsNonRoot(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func resourceRequests(cpu, memory, limit string) *corev1ac.ResourceRequirementsApplyConfiguration {
	out := corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	})
	if limit != "" {
		out.WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)})
	}
	return out
}

func tcpProbe(period, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(portDNSTCP))).
		WithPeriodSeconds(period).WithFailureThreshold(failures).WithTimeoutSeconds(2)
}

func healthProbe(path string, period, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(portHealth))).
		WithPeriodSeconds(period).WithFailureThreshold(failures).WithTimeoutSeconds(2)
}
