// Package kubernetes starts sandboxes as pods of a cluster, one pod for each.
//
//  1. Start creates a pod with the posture of pod.go, and waits until its container runs. One
//     watch for all pods of the service says so.
//  2. It attaches to the container's stdin, stdout and stderr. Nothing is lost before that, as
//     the program inside says nothing until it is asked. Stdin and stdout are the sandbox's
//     stream; the end of stderr is kept for the log.
//  3. Kill deletes the pod, and waits until the cluster has forgotten it: the node's kubelet
//     has then ended every process. If the node does not answer, the pod is deleted by force.
//  4. A pod whose program ended is deleted in the background. So is whatever a start that
//     failed has left, under a name that was known before.
//  5. Reap deletes what carries this service's label and is not known to this process. Nothing
//     else in the cluster is ever touched.
//
// The service needs these rights in its namespace, and no others: create, get, list, watch,
// patch and delete pods; create and get pods/attach.
//
// # What Kubernetes cannot set
//
// A container of Docker's has walls that no field of a pod can have:
//
//   - No network: a pod has an address. A NetworkPolicy that denies everything is to hold for
//     pods with the label notebox.service, on a cluster whose network obeys such policies.
//   - No log: the node keeps what comes out of the container, as it keeps any pod's: outputs and
//     files of runs are in /var/log/pods of the node until the pod is deleted, in files of
//     containerLogMaxSize, and count for the limit of ephemeral storage. Who may read the logs
//     of pods in this namespace may read them.
//   - nosuid and nodev: an emptyDir is mounted without them. No program can raise its rights, and
//     none may make a device.
//   - Inodes: an emptyDir has no bound of them. Each one counts for the limit of memory.
//   - Processes and threads: there is RLIMIT_NPROC for the ids that the sandbox alone has, and
//     for all the code in it. The kubelet's podPidsLimit is to be set beside that.
//   - Masked files: those of the node's container runtime. Docker's sandboxes do not see the
//     host's disks, modules, interrupts and others besides.
//   - Terminals: no bound of a sandbox's own. The node's kernel has kernel.pty.max.
//   - net.ipv4.tcp_fastopen, which a kubelet takes for unsafe. The bounds of TCP's buffers are
//     set where there is no runtime class; this needs Kubernetes 1.32.
//   - The score by which a node's kernel chooses what to end when it has no memory: the kubelet
//     sets it by what the pod requests. Swap: the kubelet decides.
//   - The filter of system calls is the runtime's default, unless the nodes have ours and
//     Options.Seccomp names it.
//   - A stream of its own: streams go through the API server. When that restarts, runs under way
//     are 503, and what waits is replaced.
//   - User ids: chance alone keeps two sandboxes from having the same, of 134 million pairs.
//   - Memory: on cgroup v2 the kubelet ends a container whole when it is out of memory, unless
//     its singleProcessOOMKill is true. A session ends by that.
package kubernetes
