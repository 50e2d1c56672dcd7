// Package cluster_test shows that the test cluster does what tests of notebox ask of a cluster.
package cluster_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
)

const (
	// image is one that `cluster.sh load` was given.
	image = "debian:trixie-slim"
	// patience is for a busy machine. A pod takes about a second on an idle one.
	patience = time.Minute
	poll     = 50 * time.Millisecond
	// lost is how long a node may be gone until the cluster has seen it: its grace period is 16 s.
	lost = 45 * time.Second
)

var nodes = []string{"node-1", "node-2"}

// cluster is what a test sees of the cluster: a namespace of its own.
type cluster struct {
	*testing.T
	config    *rest.Config
	client    *kubernetes.Clientset
	namespace string
}

func open(t *testing.T) cluster {
	t.Helper()
	path := os.Getenv("NOTEBOX_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("no cluster: make test-kubernetes starts one")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	config.QPS = -1 // who asks often finds out soon
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&core.Namespace{ObjectMeta: meta.ObjectMeta{GenerateName: "test-"}}, meta.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		err := client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, meta.DeleteOptions{})
		require.NoError(t, err)
	})
	c := cluster{T: t, config: config, client: client, namespace: namespace.Name}
	// A pod is refused until its namespace has an account for it, which a controller makes.
	c.until(patience, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(c.namespace).Get(ctx, "default", meta.GetOptions{})
		return err == nil, client404(err)
	})
	return c
}

// client404 is nil if what was asked for is not there yet.
func client404(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c cluster) until(limit time.Duration, done wait.ConditionWithContextFunc) {
	c.Helper()
	require.NoError(c, wait.PollUntilContextTimeout(c.Context(), poll, limit, true, done))
}

// pod makes a pod and does not wait for it. Its shell reads the command.
func (c cluster) pod(name, node, command string) *core.Pod {
	c.Helper()
	pod, err := c.client.CoreV1().Pods(c.namespace).Create(c.Context(), &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: core.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 core.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64),
			Containers: []core.Container{{
				Name: "main", Image: image, ImagePullPolicy: core.PullNever,
				Command: []string{"bash", "-c", command},
				// Else the end of what is sent ends what is heard.
				Stdin: true, StdinOnce: true,
			}},
		},
	}, meta.CreateOptions{})
	require.NoError(c, err)
	return pod
}

// reaches waits until the pod is in that phase.
func (c cluster) reaches(name string, phase core.PodPhase) *core.Pod {
	c.Helper()
	var pod *core.Pod
	c.until(patience, func(ctx context.Context) (bool, error) {
		var err error
		pod, err = c.client.CoreV1().Pods(c.namespace).Get(ctx, name, meta.GetOptions{})
		if err == nil && pod.Status.Phase == core.PodFailed && phase != core.PodFailed {
			return false, fmt.Errorf("%s failed: %s", name, c.logs(name))
		}
		return err == nil && pod.Status.Phase == phase, err
	})
	return pod
}

func (c cluster) logs(name string) string {
	c.Helper()
	text, err := c.client.CoreV1().Pods(c.namespace).GetLogs(name, &core.PodLogOptions{}).DoRaw(c.Context())
	require.NoError(c, err)
	return string(text)
}

// run has a pod run to its end and says what it printed.
func (c cluster) run(name, node, command string) string {
	c.Helper()
	c.pod(name, node, command)
	c.reaches(name, core.PodSucceeded)
	return c.logs(name)
}

func TestEachNodeRunsAPod(t *testing.T) {
	c := open(t)
	for _, node := range nodes {
		require.Equal(t, "hello from "+node+"\n", c.run("on-"+node, node, "echo hello from "+node))
	}
}

func TestSchedulerPlacesAPod(t *testing.T) {
	c := open(t)
	start := time.Now()
	c.pod("any", "", "sleep 1000")
	pod := c.reaches("any", core.PodRunning)
	t.Logf("running %d ms after create", time.Since(start).Milliseconds())
	require.Contains(t, nodes, pod.Spec.NodeName)
}

func TestAttachBothWays(t *testing.T) {
	c := open(t)
	for i, node := range nodes {
		name := "attach-" + node
		c.pod(name, node, `while read -r line; do echo "heard $line"; echo aside >&2; done`)
		c.reaches(name, core.PodRunning)
		url := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.namespace).Name(name).
			SubResource("attach").VersionedParams(&core.PodAttachOptions{Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
		var executor remotecommand.Executor
		var err error
		if i == 0 {
			executor, err = remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, url.String())
		} else {
			executor, err = remotecommand.NewSPDYExecutor(c.config, http.MethodPost, url)
		}
		require.NoError(t, err)
		// A conversation: what a container says just before its end, attach may lose.
		stdin, say := io.Pipe()
		hear, stdout := io.Pipe()
		var stderr bytes.Buffer
		ended := make(chan error, 1)
		go func() {
			ended <- executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: &stderr})
			stdout.Close()
		}()
		lines := bufio.NewReader(hear)
		for _, word := range []string{"this", "and that"} {
			_, err := fmt.Fprintln(say, word)
			require.NoError(t, err)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "heard "+word+"\n", line)
		}
		say.Close()
		require.NoError(t, <-ended)
		require.Contains(t, stderr.String(), "aside\n")
		c.reaches(name, core.PodSucceeded)
	}
}

// serve has a pod on node-2 that answers each call with one line, and a Service before it.
func (c cluster) serve(name string) *core.Service {
	c.Helper()
	const port = 8080
	c.pod(name, "node-2", fmt.Sprintf(`
		exec perl -MIO::Socket::INET -e '
			my $server = IO::Socket::INET->new(LocalPort => %d, Listen => 5, ReuseAddr => 1) or die $!;
			while (my $caller = $server->accept) {
				while (<$caller>) { last if /^\r?$/ }
				print $caller "HTTP/1.0 200 OK\r\n\r\nserved by %s\n";
				close $caller;
			}'`, port, name))
	c.reaches(name, core.PodRunning)
	service, err := c.client.CoreV1().Services(c.namespace).Create(c.Context(), &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: core.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []core.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}, meta.CreateOptions{})
	require.NoError(c, err)
	return service
}

// call is a script that asks a host's port 80 until it answers.
func call(host string) string {
	return fmt.Sprintf(`
		for i in {1..100}; do
			if exec 3<>/dev/tcp/%s/80; then break; fi 2>/dev/null
			sleep 0.1
		done
		printf 'GET / HTTP/1.0\r\n\r\n' >&3
		tail -n 1 <&3`, host)
}

func TestServiceByNameFromTheOtherNode(t *testing.T) {
	c := open(t)
	c.serve("service")
	require.Equal(t, "served by service\n", c.run("caller", "node-1", call("service."+c.namespace+".svc.cluster.local")))
}

func TestServiceByShortNameFromItsOwnNode(t *testing.T) {
	c := open(t)
	c.serve("service")
	require.Equal(t, "served by service\n", c.run("caller", "node-2", call("service")))
}

func TestServiceFromTheHost(t *testing.T) {
	c := open(t)
	service := c.serve("service")
	c.until(patience, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+service.Spec.ClusterIP, nil)
		if err != nil {
			return false, err
		}
		response, err := (&http.Client{Transport: &http.Transport{}, Timeout: time.Second}).Do(request)
		if err != nil {
			return false, nil // no node has the Service yet
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.Equal(t, "served by service\n", string(text))
		return true, err
	})
}

func TestPodReachesTheAPI(t *testing.T) {
	c := open(t)
	for _, node := range nodes {
		command := `: </dev/tcp/$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT && echo connected`
		require.Equal(t, "connected\n", c.run("on-"+node, node, command))
	}
}

func TestADeletedPodIsGone(t *testing.T) {
	c := open(t)
	c.pod("short", "node-1", "sleep 1000")
	c.reaches("short", core.PodRunning)
	require.NoError(t, c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), "short", meta.DeleteOptions{}))
	c.until(patience, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, "short", meta.GetOptions{})
		return apierrors.IsNotFound(err), client404(err)
	})
}

func TestPodSecurityRefuses(t *testing.T) {
	c := open(t)
	patch := []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	_, err := c.client.CoreV1().Namespaces().Patch(t.Context(), c.namespace, "application/merge-patch+json", patch, meta.PatchOptions{})
	require.NoError(t, err)
	_, err = c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: "privileged"},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: image}}},
	}, meta.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), err)
}

func TestNetworkPolicyDenies(t *testing.T) {
	c := open(t)
	c.serve("service")
	require.Equal(t, "served by service\n", c.run("before", "node-1", call("service")))
	_, err := c.client.NetworkingV1().NetworkPolicies(c.namespace).Create(t.Context(), &networking.NetworkPolicy{
		ObjectMeta: meta.ObjectMeta{Name: "nobody"},
		Spec: networking.NetworkPolicySpec{
			PodSelector: meta.LabelSelector{MatchLabels: map[string]string{"app": "service"}},
			PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress},
		},
	}, meta.CreateOptions{})
	require.NoError(t, err)
	c.until(patience, func(ctx context.Context) (bool, error) {
		name := fmt.Sprintf("after-%d", time.Now().UnixNano())
		answer := c.run(name, "node-1", `timeout 2 bash -c ': </dev/tcp/service/80' 2>/dev/null && echo yes || echo no`)
		return answer == "no\n", nil
	})
}

// TestNodeLost is the last: it cuts a node's power, and gives it back.
func TestNodeLost(t *testing.T) {
	c := open(t)
	c.pod("victim", "node-2", "sleep 1000")
	c.reaches("victim", core.PodRunning)
	ready := func(limit time.Duration, want core.ConditionStatus) {
		c.until(limit, func(ctx context.Context) (bool, error) {
			node, err := c.client.CoreV1().Nodes().Get(ctx, "node-2", meta.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, condition := range node.Status.Conditions {
				if condition.Type == core.NodeReady {
					return condition.Status == want, nil
				}
			}
			return false, nil
		})
	}
	script := func(command string) {
		out, err := exec.CommandContext(t.Context(), "../../scripts/cluster.sh", command, "node-2").CombinedOutput()
		require.NoError(t, err, string(out))
	}
	script("stop")
	ready(lost, core.ConditionUnknown)
	require.Equal(t, "still here\n", c.run("other", "node-1", "echo still here"))
	script("start")
	ready(patience, core.ConditionTrue)
	require.Equal(t, "back\n", c.run("again", "node-2", "echo back"))
}
