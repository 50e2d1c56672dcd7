package kubernetes

import (
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"notebox/runner"
	"notebox/runner/posture"
)

// The labels of every pod.
const (
	labelService     = "notebox.service"     // whose it is: Options.ServiceID
	labelSandbox     = "notebox.sandbox"     // its own id
	labelEnvironment = "notebox.environment" // what it was started from
	labelSession     = "notebox.session"     // it is a session's
)

const containerName = "sandbox"

const (
	// The ids that sandboxes have, which nobody else has: Linux distributions, systemd and
	// kubelets with user namespaces give no ids from 0x70000000 on.
	firstUser, lastUser = 0x70000000, 0x7ffffffd
	// idsEach is how many ids a sandbox has: its code is the first; the next is the real uid of
	// those children of the harness that the code must not reach.
	idsEach = 2
	// lifetime is the last resort against a pod that nobody removes. Sessions end before, and
	// what waits in a pool for so long is replaced.
	lifetime = 7 * 24 * time.Hour
	// idleCPU is what a sandbox requests, in thousandths of a core: it waits much of the time.
	idleCPU = 50
	// diskLimit is of the node's log of the container: the output and files of a run go out by
	// its stdout. The kubelet cuts such logs each ten seconds.
	diskRequest, diskLimit = 64 << 20, 4 << 30
	// lostAfter is for how many seconds a pod stays on a node that was lost. Its run has ended.
	lostAfter = 30
	// harnessSize is of the harness's own folder, bytes.
	harnessSize = 4 << 20
)

// mountFolder is that of /mnt/data: an emptyDir is root's, and what is made in it need not be.
const mountFolder = "/mnt"

// lastWords is where the kubelet has a file of the node's that every program could fill, if it
// found it.
const lastWords = posture.HarnessFolder + "/node"

// entry prepares what Docker does for a container, and becomes the program of the image. $1 is
// the user, $2 how many processes it may have.
const entry = `set -e
setpriv --reuid "$1" --regid "$1" --clear-groups mkdir -m 755 ` + runner.DataFolder + `
chmod 755 ` + mountFolder + ` ` + posture.HarnessFolder + `
chmod 700 ` + lastWords + `
chmod 1777 /tmp /dev/shm
exec prlimit --core=$3:$3 --nofile=$4:$4 --nproc="$2:$2" /opt/venv/bin/python3 /opt/notebox
`

// pod is a sandbox's.
func (e *Engine) pod(id string, env runner.Environment, l runner.Limits) *corev1.Pod {
	var (
		yes, no       = true, false
		root, seconds = int64(0), int64(lifetime / time.Second)
		grace, lost   = int64(killGrace), int64(lostAfter)
		number        = strconv.Itoa
	)
	spec := corev1.PodSpec{
		Hostname:                      "sandbox",
		RestartPolicy:                 corev1.RestartPolicyNever,
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		ShareProcessNamespace:         &yes, // the pod's first process is who takes the exit codes of orphans
		ActiveDeadlineSeconds:         &seconds,
		TerminationGracePeriodSeconds: &grace,
		DNSPolicy:                     corev1.DNSNone, // or the node's would be in a file
		DNSConfig:                     &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &lost},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &lost},
		},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser:      &root, // the harness, which keeps two capabilities; the code has the ids below
			RunAsGroup:     &root,
			SeccompProfile: e.seccomp(),
		},
		Containers: []corev1.Container{{
			Name:                   containerName,
			Image:                  env.Image,
			ImagePullPolicy:        corev1.PullIfNotPresent,
			Command:                []string{"/bin/sh", "-c", entry, "sh", number(somebody()), strconv.FormatInt(l.Pids, 10), number(posture.CoreLimit), number(posture.OpenFiles)},
			WorkingDir:             "/",
			Env:                    []corev1.EnvVar{{Name: "HOME", Value: posture.HarnessFolder}}, // the kernel has another
			Stdin:                  true,
			StdinOnce:              e.options.Fleeting, // a session's program goes on after its service is gone
			TerminationMessagePath: lastWords + "/words",
			Resources:              resources(l),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no,
				ReadOnlyRootFilesystem:   &yes,
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"SETGID", "SETUID"}}, // to become the user, and nothing else
			},
		}},
	}
	for _, m := range []struct {
		name, path string
		size       int64
	}{
		{"mnt", mountFolder, l.DataSize},
		{"tmp", "/tmp", l.TmpSize},
		{"shm", "/dev/shm", posture.ShmSize},
		{"harness", posture.HarnessFolder, harnessSize},
	} {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: m.name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(m.size, resource.BinarySI)},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: m.name, MountPath: m.path})
	}
	if e.options.RuntimeClass != "" {
		spec.RuntimeClassName = &e.options.RuntimeClass
	} else { // the others bring a kernel of their own
		spec.SecurityContext.Sysctls = sysctls()
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: namePrefix + id, Labels: map[string]string{
			labelService: e.options.ServiceID, labelSandbox: id, labelEnvironment: env.Name,
		}},
		Spec: spec,
	}
}

// somebody is the first id of a sandbox, by chance.
func somebody() int { return firstUser + idsEach*rand.IntN((lastUser-firstUser)/idsEach) }

func (e *Engine) seccomp() *corev1.SeccompProfile {
	if e.options.Seccomp == "" {
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &e.options.Seccomp}
}

func resources(l runner.Limits) corev1.ResourceRequirements {
	bytes := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
	cores := int64(l.CPUs * 1000)
	return corev1.ResourceRequirements{
		Limits: corev1.ResourceList{
			corev1.ResourceMemory:           bytes(l.Memory),
			corev1.ResourceCPU:              *resource.NewMilliQuantity(cores, resource.DecimalSI),
			corev1.ResourceEphemeralStorage: bytes(diskLimit),
		},
		Requests: corev1.ResourceList{
			corev1.ResourceMemory:           bytes(l.Memory),
			corev1.ResourceCPU:              *resource.NewMilliQuantity(min(cores, idleCPU), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: bytes(diskRequest),
		},
	}
}

// sysctls are those that a kubelet takes for safe.
func sysctls() (all []corev1.Sysctl) {
	for name, value := range posture.Sysctls() {
		if name != "net.ipv4.tcp_fastopen" {
			all = append(all, corev1.Sysctl{Name: name, Value: value})
		}
	}
	return all
}
