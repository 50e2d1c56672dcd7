package cluster_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chart = "../../deploy/helm/notebox"
	// begun is how long a service may take on a busy machine: it imports what runs want first.
	begun = 4 * time.Minute
	// apiKey is one for tests.
	apiKey  = "notebox-chart-test-key"
	linkKey = "6e6f7465626f78206368617274207465737473206e6f7465626f782063686172"
)

// images are those that `cluster.sh load` was given.
type images struct{ service, jupyter, bash string }

func chartImages(t *testing.T) images {
	t.Helper()
	i := images{os.Getenv("NOTEBOX_TEST_SERVICE_IMAGE"), os.Getenv("NOTEBOX_TEST_JUPYTER_IMAGE"), os.Getenv("NOTEBOX_TEST_BASH_IMAGE")}
	if i.service == "" || i.jupyter == "" || i.bash == "" {
		t.Skip("no images: make test-kubernetes loads them")
	}
	return i
}

// clusterScript is the one that started the cluster: of another checkout, if somebody says so.
func clusterScript() string {
	return cmp.Or(os.Getenv("NOTEBOX_TEST_CLUSTER_SCRIPT"), "../../scripts/cluster.sh")
}

// tool runs kubectl or helm on the cluster.
func (c cluster) tool(stdin string, args ...string) (string, error) {
	command := exec.CommandContext(c.Context(), clusterScript(), args...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

func (c cluster) helm(args ...string) string {
	c.Helper()
	out, err := c.tool("", append([]string{"helm", "--namespace", c.namespace}, args...)...)
	require.NoError(c, err)
	return out
}

// secret makes a Secret of one key.
func (c cluster) secret(name, key, value string) {
	c.Helper()
	_, err := c.client.CoreV1().Secrets(c.namespace).Create(c.Context(), &core.Secret{
		ObjectMeta: meta.ObjectMeta{Name: name}, StringData: map[string]string{key: value},
	}, meta.CreateOptions{})
	require.NoError(c, err)
}

// TestChartExamples are what they are for: the cluster would take all that they render. What it
// does not know by itself are two kinds whose definitions others bring, as Go modules.
func TestChartExamples(t *testing.T) {
	c := open(t)
	for module, file := range map[string]string{
		"github.com/prometheus-operator/prometheus-operator@v0.76.2": "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"github.com/kedacore/keda/v2@v2.18.1":                        "config/crd/bases/keda.sh_scaledobjects.yaml",
	} {
		download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
		download.Dir = t.TempDir()
		out, err := download.Output()
		require.NoError(t, err, string(out))
		var got struct{ Dir string }
		require.NoError(t, json.Unmarshal(out, &got))
		path := filepath.Join(got.Dir, file)
		_, err = c.tool("", "kubectl", "apply", "--server-side", "-f", path)
		require.NoError(t, err)
		t.Cleanup(func() {
			out, err := exec.Command(clusterScript(), "kubectl", "delete", "-f", path).CombinedOutput()
			require.NoError(t, err, string(out))
		})
		_, err = c.tool("", "kubectl", "wait", "--for=condition=Established", "--timeout=60s", "-f", path)
		require.NoError(t, err)
	}
	examples, err := filepath.Glob(filepath.Join(chart, "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, example := range examples {
		t.Run(strings.TrimSuffix(filepath.Base(example), ".yaml"), func(t *testing.T) {
			c.T = t
			c.helm("lint", "--strict", "--kube-version", "1.34.0", chart, "--values", example)
			for _, more := range [][]string{nil, {"--set", "sandboxes.createNamespace=false,sandboxes.namespace=" + c.namespace}} {
				rendered := c.helm(append([]string{"template", "on", chart, "--kube-version", "1.34.0", "--values", example}, more...)...)
				if more == nil && strings.Contains(rendered, "kind: Namespace") {
					continue // what is in it cannot be tried before it is there
				}
				_, err := c.tool(rendered, "kubectl", "--namespace", c.namespace, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
				require.NoError(t, err)
			}
		})
	}
}

// TestChartRefuses what cannot be meant, and what the operator has to say.
func TestChartRefuses(t *testing.T) {
	c := open(t)
	good := map[string]string{
		"image": "notebox/service:1", "languages.jupyter.image": "notebox/jupyter:1",
		"worker.privileges": "accept", "apiKeys.existingSecret": "keys",
	}
	several := func(more map[string]string) map[string]string {
		set := map[string]string{"storage.url": "s3://notebox", "linkKeys.existingSecret": "links", "peers.existingSecret": "peers"}
		maps.Copy(set, more)
		return set
	}
	const accepted = ""
	for _, test := range []struct {
		desc string
		set  map[string]string
		want string
	}{
		{"what is good", nil, accepted},
		{"no image", map[string]string{"image": ""}, "name the service's image"},
		{"no word about privileges", map[string]string{"worker.privileges": ""}, "the capability SYS_ADMIN, to mount a /proc of their own"},
		{"another word", map[string]string{"worker.privileges": "yes"}, "worker"},
		{"user namespaces", map[string]string{"worker.privileges": "", "worker.userNamespaces": "true"}, accepted},
		{"pods", map[string]string{"worker.privileges": "", "engine": "kubernetes"}, accepted},
		{"no keys", map[string]string{"apiKeys.existingSecret": ""}, "apiKeys.none"},
		{"nobody's keys", map[string]string{"apiKeys.existingSecret": "", "apiKeys.none": "true"}, accepted},
		{"no Python", map[string]string{"languages.jupyter.image": ""}, "languages.jupyter.image"},
		{"several pods and a folder", map[string]string{"replicas": "2"}, "storage.url"},
		{"several pods and no link keys", map[string]string{"replicas": "2", "storage.url": "s3://notebox"}, "linkKeys.existingSecret"},
		{"several pods that are no peers", several(map[string]string{"replicas": "2", "peers.existingSecret": ""}), "whose key peer-secret has at least 32 bytes"},
		{"several by CPU time that are no peers", several(map[string]string{"autoscaling.enabled": "true", "peers.existingSecret": ""}), "peers.existingSecret"},
		{"several by KEDA that are no peers", several(map[string]string{"keda.enabled": "true", "peers.existingSecret": ""}), "peers.existingSecret"},
		{"peers' secret that is no name", several(map[string]string{"peers.existingSecret": "The Secret"}), "existingSecret"},
		{"several pods", several(map[string]string{"replicas": "2"}), accepted},
		{"limits at a Redis", map[string]string{"limits.redis.existingSecret": "limits"}, accepted},
		{"limits' URL in a value", map[string]string{"limits.redis.url": "redis://redis.example.org"}, "limits"},
		{"two that count pods", several(map[string]string{"autoscaling.enabled": "true", "keda.enabled": "true"}), "only one may set"},
		{"a value that is none", map[string]string{"replica": "2"}, "replica"},
		{"a value of another type", map[string]string{"end.drainSeconds": "soon"}, "drainSeconds"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			args := []string{"helm", "template", "on", chart, "--kube-version", "1.34.0"}
			all := maps.Clone(good)
			maps.Copy(all, test.set)
			for name, value := range all {
				args = append(args, "--set", name+"="+value)
			}
			out, err := c.tool("", args...)
			if test.want == accepted {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Contains(t, out, test.want)
		})
	}
}

// TestChartPeers find each other by the Service that the chart makes for it, and their NetworkPolicy
// lets them reach each other, however narrow it is.
func TestChartPeers(t *testing.T) {
	c := open(t)
	for desc, test := range map[string]struct {
		set             string
		name            string // that of peers
		ingress, egress []networking.NetworkPolicyPeer
	}{
		"one pod": {`networkPolicy.egress=[],networkPolicy.from=[{"namespaceSelector":{}}]`, "", []networking.NetworkPolicyPeer{{NamespaceSelector: &meta.LabelSelector{}}}, nil},
		"peers": {
			`networkPolicy.egress=[],networkPolicy.from=[{"namespaceSelector":{}}],peers.existingSecret="secret"`, "on-notebox-pods:8080",
			[]networking.NetworkPolicyPeer{{NamespaceSelector: &meta.LabelSelector{}}, {PodSelector: ownPods}},
			[]networking.NetworkPolicyPeer{{PodSelector: ownPods}},
		},
		"peers that everybody reaches": {`peers.existingSecret="secret"`, "on-notebox-pods:8080", nil, nil},
	} {
		t.Run(desc, func(t *testing.T) {
			c.T = t
			rendered := c.helm("template", "on", chart, "--kube-version", "1.34.0", "--values", filepath.Join(chart, "examples/one-pod.yaml"), "--set-json", test.set)
			var policy networking.NetworkPolicy
			var deployment apps.Deployment
			var pods core.Service
			pick(t, rendered, "NetworkPolicy", "on-notebox", &policy)
			pick(t, rendered, "Deployment", "on-notebox", &deployment)
			pick(t, rendered, "Service", "on-notebox-pods", &pods)

			env := map[string]string{}
			for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
				env[variable.Name] = variable.Value
				if from := variable.ValueFrom; from != nil {
					env[variable.Name] = from.FieldRef.FieldPath
				}
			}
			require.Equal(t, test.name, env["NOTEBOX_PEERS"])
			if test.name != "" {
				require.Equal(t, "status.podIP", env["POD_IP"])
				require.True(t, pods.Spec.PublishNotReadyAddresses)
				require.Equal(t, core.ClusterIPNone, pods.Spec.ClusterIP)
				require.Equal(t, ownPods.MatchLabels, pods.Spec.Selector)
				require.Subset(t, deployment.Spec.Template.Labels, pods.Spec.Selector)
			}
			require.Len(t, policy.Spec.Ingress, 1)
			require.Equal(t, test.ingress, policy.Spec.Ingress[0].From)
			if test.egress == nil {
				require.Empty(t, policy.Spec.Egress)
				return
			}
			require.Len(t, policy.Spec.Egress, 1)
			require.Equal(t, test.egress, policy.Spec.Egress[0].To)
			require.EqualValues(t, 8080, policy.Spec.Egress[0].Ports[0].Port.IntVal)
		})
	}
}

// ownPods are those of the release "on".
var ownPods = &meta.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "notebox", "app.kubernetes.io/instance": "on"}}

// pick reads one object of a rendered chart.
func pick(t *testing.T, rendered, kind, name string, object any) {
	t.Helper()
	for _, one := range strings.Split(rendered, "\n---\n") {
		var is meta.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal([]byte(one), &is))
		if is.Kind == kind && is.Name == name {
			require.NoError(t, yaml.Unmarshal([]byte(one), object))
			return
		}
	}
	require.Fail(t, "not rendered", "%s %s", kind, name)
}

// release is an installed chart.
type release struct {
	cluster
	values []string // flags of helm that set values
}

const releaseName = "notebox" // which is then all that has been made

func (c cluster) install(values ...string) release {
	c.Helper()
	c.secret("keys", "api-keys", apiKey+"\n")
	c.secret("links", "link-keys", linkKey+"\n")
	r := release{c, append([]string{"--set", "apiKeys.existingSecret=keys,linkKeys.existingSecret=links"}, values...)}
	c.helm(append([]string{"install", releaseName, chart, "--wait", "--timeout", begun.String()}, r.values...)...)
	return r
}

// pods are those of the service, also such as end.
func (r release) pods() []core.Pod {
	r.Helper()
	all, err := r.client.CoreV1().Pods(r.namespace).List(r.Context(), meta.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + releaseName})
	require.NoError(r, err)
	return all.Items
}

// addressOf is a Service's.
func (c cluster) addressOf(namespace, name string) string {
	c.Helper()
	service, err := c.client.CoreV1().Services(namespace).Get(c.Context(), name, meta.GetOptions{})
	require.NoError(c, err)
	return service.Spec.ClusterIP
}

func (r release) address() string {
	r.Helper()
	return r.addressOf(r.namespace, releaseName)
}

// post calls the API on a connection of its own, and returns the status and what it says.
func (r release) post(ctx context.Context, address, path string, body any) (int, map[string]any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+apiKey)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	raw, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	var out map[string]any
	err = json.Unmarshal(raw, &out)
	return response.StatusCode, out, err
}

// prints runs code and says what it printed.
func (r release) prints(address string, order map[string]any) string {
	r.Helper()
	status, got, err := r.post(r.Context(), address, "/v1/execute", order)
	require.NoError(r, err)
	require.Equal(r, http.StatusOK, status, "%v", got)
	require.Equal(r, "ok", got["status"], "%v", got)
	return got["text"].(string)
}

// uninstall removes the release, and looks that nothing is left but what was there before.
func (r release) uninstall() {
	r.Helper()
	before := r.pods()
	r.helm("uninstall", releaseName, "--wait", "--timeout", begun.String())
	r.until(2*patience, func(context.Context) (bool, error) { return len(r.pods()) == 0, nil })
	require.NotEmpty(r, before)
	kinds := "pods,services,endpointslices,deployments,replicasets,serviceaccounts,secrets,configmaps,roles,rolebindings,networkpolicies,poddisruptionbudgets,leases"
	r.until(patience, func(context.Context) (bool, error) {
		left, err := r.tool("", "kubectl", "--namespace", r.namespace, "get", kinds, "--output", "name", "--ignore-not-found")
		if err != nil {
			return false, err
		}
		for _, name := range strings.Fields(left) {
			switch name {
			case "secret/keys", "secret/links", "serviceaccount/default", "configmap/kube-root-ca.crt":
			default:
				return false, nil
			}
		}
		all, err := r.tool("", "kubectl", "get", "namespaces,clusterroles,clusterrolebindings", "--output", "name", "--selector", "app.kubernetes.io/instance="+releaseName)
		return !strings.Contains(all, "/"), err
	})
}

// TestChartWorkersInThePod is way 1: a release from its first to its last day.
func TestChartWorkersInThePod(t *testing.T) {
	i := chartImages(t)
	c := open(t)
	const sessions, drain = 20, 2
	r := c.install("--set", strings.Join([]string{
		"image=" + i.service, "imagePullPolicy=Never", "languages.jupyter.image=" + i.jupyter, "languages.bash.image=" + i.bash,
		"worker.privileges=accept", "worker.resources.requests.cpu=50m", "worker.resources.requests.memory=256Mi",
		fmt.Sprintf("end.sessionsSeconds=%d,end.drainSeconds=%d", sessions, drain),
		"pool.python=1", "settings.start-timeout=3m",
	}, ","))
	address := r.address()

	step := func(name string, do func(release)) {
		t.Helper()
		if !t.Run(name, func(t *testing.T) {
			r := r
			r.T = t
			do(r)
		}) {
			t.FailNow()
		}
	}
	step("Runs", func(r release) {
		require.Equal(r, "2\n", r.prints(address, map[string]any{"code": "print(1 + 1)"}))
		require.Equal(r, "shell\n", r.prints(address, map[string]any{"code": "echo shell", "language": "bash"}))
	})
	step("NothingOfThePodIsSeen", func(r release) {
		got := r.prints(address, map[string]any{"code": `import os
print(os.path.exists("/run/workers"), os.path.exists("/var/run/secrets"), [name for name in os.environ if "KUBERNETES" in name or "NOTEBOX" in name])
try: open("/sys/fs/cgroup/memory/cgroup.procs", "w"); print("groups can be written")
except OSError: pass
import socket
try: socket.create_connection(("` + address + `", 80), 3); print("there is a network")
except OSError: pass`})
		require.Equal(r, "False False []\n", got)
	})
	step("Privileges", func(r release) {
		pod := r.pods()[0]
		for container, want := range map[string]string{ // of the listener, and of the service
			"jupyter": "CapPrm:\t00000000000000c0\nCapEff:\t00000000000000c0\nNoNewPrivs:\t1\n",
			"bash":    "CapPrm:\t00000000000000c0\nCapEff:\t00000000000000c0\nNoNewPrivs:\t1\n",
		} {
			out, err := r.tool("", "kubectl", "--namespace", r.namespace, "exec", pod.Name, "--container", container, "--",
				"grep", "-E", "^(CapPrm|CapEff|NoNewPrivs):", "/proc/1/status")
			require.NoError(r, err)
			require.Equal(r, want, out)
		}
		require.False(r, *pod.Spec.AutomountServiceAccountToken)
		for _, volume := range pod.Spec.Volumes {
			require.Nil(r, volume.Projected, "a token")
			require.Nil(r, volume.HostPath)
		}
	})
	step("UpgradeUnderLoadWithASession", func(r release) { r.upgrade(address, (sessions+drain+25)*time.Second) })
	step("Uninstall", release.uninstall)
}

// upgrade has a session open, and runs come. grace is how long the pod may take to end.
func (r release) upgrade(address string, grace time.Duration) {
	r.Helper()
	status, session, err := r.post(r.Context(), address, "/v1/sessions", map[string]any{})
	require.NoError(r, err)
	require.Equal(r, http.StatusCreated, status, "%v", session)
	inSession := func(code string) map[string]any { return map[string]any{"session": session["id"], "code": code} }
	require.Empty(r, r.prints(address, inSession("x = 41")))
	old := r.pods()[0]
	oldAddress := old.Status.PodIP + ":8080"

	ctx, stop := context.WithCancel(r.Context())
	failed, runs := make(chan error, 1), 0
	go func() {
		defer close(failed)
		for ctx.Err() == nil {
			status, got, err := r.post(ctx, address, "/v1/execute", map[string]any{"code": "print(1)"})
			if ctx.Err() == nil && (err != nil || status != http.StatusOK || got["text"] != "1\n") {
				failed <- fmt.Errorf("run %d: %d %v %w", runs, status, got, err)
				return
			}
			runs++
			time.Sleep(poll)
		}
	}()

	r.helm(append([]string{"upgrade", releaseName, chart, "--wait", "--timeout", begun.String(), "--set", "settings.max-timeout=6m"}, r.values...)...)
	current := func() *core.Pod {
		pod, err := r.client.CoreV1().Pods(r.namespace).Get(r.Context(), old.Name, meta.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		require.NoError(r, err)
		return pod
	}
	r.until(patience, func(context.Context) (bool, error) {
		pod := current()
		return pod == nil || pod.DeletionTimestamp != nil, nil
	})
	begin := time.Now()
	require.NotNil(r, current(), "the old pod serves its sessions")
	require.Equal(r, "42\n", r.prints(oldAddress, inSession("print(x + 1)")))
	r.until(grace+patience, func(context.Context) (bool, error) { return current() == nil, nil })
	took := time.Since(begin)
	stop()
	require.NoError(r, <-failed)
	require.Positive(r, runs)
	require.Less(r, took, grace)
	r.Logf("the old pod ended after %.1f s; %d runs meanwhile, all good", took.Seconds(), runs)

	status, got, err := r.post(r.Context(), address, "/v1/execute", inSession("print(x + 1)"))
	require.NoError(r, err)
	require.Contains(r, []int{http.StatusNotFound, http.StatusGone}, status, "%v", got)
}

// TestChartPodForEachSandbox is way 2.
func TestChartPodForEachSandbox(t *testing.T) {
	i := chartImages(t)
	c := open(t)
	sandboxes := c.namespace + "-sandboxes"
	registry, _, found := strings.Cut(i.jupyter, "notebox/jupyter:")
	require.True(t, found && registry == "", "an image of this machine's")
	restricted := []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	_, err := c.client.CoreV1().Namespaces().Patch(t.Context(), c.namespace, "application/merge-patch+json", restricted, meta.PatchOptions{})
	require.NoError(t, err)
	r := c.install("--set", strings.Join([]string{
		"engine=kubernetes", "image=" + i.service, "imagePullPolicy=Never", "sandboxes.namespace=" + sandboxes,
		"pool.python=1", "settings.cpus=0.5", "settings.start-timeout=3m",
	}, ","))
	require.Equal(t, "2\n", r.prints(r.address(), map[string]any{"code": "print(1 + 1)"}))
	require.Equal(t, "no network\n", r.prints(r.address(), map[string]any{"code": fmt.Sprintf(`import os, socket
for address in (%q, 80), (%q, 443), (%q, 53):
    try: socket.create_connection(address, 2); print(address)
    except OSError: pass
print("no network")`, r.address(), c.addressOf("default", "kubernetes"), c.addressOf("kube-system", "kube-dns"))}))
	t.Cleanup(func() { // of a test that fails
		err := c.client.CoreV1().Namespaces().Delete(context.Background(), sandboxes, meta.DeleteOptions{})
		require.NoError(t, client404(err))
	})
	may := func(verb, resource, namespace string) bool {
		resource, part, _ := strings.Cut(resource, "/")
		review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorization.SubjectAccessReview{
			Spec: authorization.SubjectAccessReviewSpec{
				User: fmt.Sprintf("system:serviceaccount:%s:%s", c.namespace, releaseName),
				ResourceAttributes: &authorization.ResourceAttributes{
					Verb: verb, Resource: resource, Subresource: part, Namespace: namespace,
				},
			},
		}, meta.CreateOptions{})
		require.NoError(t, err)
		return review.Status.Allowed
	}
	require.True(t, may("create", "pods", sandboxes))
	require.True(t, may("create", "pods/attach", sandboxes))
	for _, not := range [][]string{
		{"create", "pods", c.namespace}, {"get", "secrets", c.namespace}, {"get", "secrets", sandboxes}, {"create", "pods/exec", sandboxes},
		{"update", "pods", sandboxes}, {"deletecollection", "pods", sandboxes}, {"create", "serviceaccounts/token", sandboxes},
	} {
		require.False(t, may(not[0], not[1], not[2]), not)
	}
	pods, err := c.client.CoreV1().Pods(sandboxes).List(t.Context(), meta.ListOptions{LabelSelector: "notebox.service"})
	require.NoError(t, err)
	require.NotEmpty(t, pods.Items, "one waits for the next run")
	r.uninstall()
	c.until(patience, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, sandboxes, meta.GetOptions{})
		return apierrors.IsNotFound(err), client404(err)
	})
}
