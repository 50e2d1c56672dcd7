package kubernetes

import (
	"crypto/rand"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// TestAPIGoesAway breaks every connection to the API in the middle of a run, and lets none be made
// for some seconds.
func TestAPIGoesAway(t *testing.T) {
	env := realEnvironment(t)
	service := "test-away-" + strings.ToLower(rand.Text())
	way := newWay(t)
	e, err := New(Options{ServiceID: service, Kubeconfig: way.kubeconfig, Log: testLog(t)})
	require.NoError(t, err)
	closeAtEnd(t, e)
	limits := smallLimits()
	limits.Timeout = time.Minute
	sink := runnertest.NewRecorder(t)
	var once sync.Once
	sink.OnOutput = func(runner.Event) {
		once.Do(func() {
			way.shut()
			_, err := e.Start(t.Context(), env, limits)
			requireUnavailable(t, err, "the cluster does not answer")
			requireUnavailable(t, e.Ready(t.Context(), env), "the cluster does not answer")
			time.AfterFunc(5*time.Second, way.open)
		})
	}
	out, err := runnertest.Once(t.Context(), e, testLog(t), runner.Spec{
		ID: "away", Environment: env, Notebook: runnertest.Notebook(runnertest.CellSleep), Limits: limits,
	}, sink)
	require.Nil(t, out)
	requireUnavailable(t, err, "the cluster went away")
	require.Eventually(t, func() bool { return len(left(t, service)) == 0 }, time.Minute, 100*time.Millisecond)

	limits.Timeout = time.Minute
	out, err = runnertest.Once(t.Context(), e, testLog(t), runner.Spec{
		ID: "back", Environment: env, Notebook: runnertest.Notebook(runnertest.CellHello), Limits: limits,
	}, runnertest.NewRecorder(t))
	require.NoError(t, err)
	require.Equal(t, runner.StatusOK, out.Status)
}

// way is one to the API that can be shut.
type way struct {
	t                        *testing.T
	kubeconfig, api, address string

	mu          sync.Mutex
	listener    net.Listener
	connections []net.Conn
}

func newWay(t *testing.T) *way {
	config, err := clientcmd.LoadFromFile(os.Getenv("NOTEBOX_TEST_KUBECONFIG"))
	require.NoError(t, err)
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	api, err := url.Parse(cluster.Server)
	require.NoError(t, err)
	w := &way{t: t, api: api.Host, address: "127.0.0.1:0", kubeconfig: filepath.Join(t.TempDir(), "config")}
	w.open()
	t.Cleanup(w.shut)
	w.address = w.listener.Addr().String()
	cluster.Server, cluster.TLSServerName = "https://"+w.address, api.Hostname()
	require.NoError(t, clientcmd.WriteToFile(*config, w.kubeconfig))
	return w
}

func (w *way) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.listener = listener
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", w.api)
			if err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			w.connections = append(w.connections, from, to)
			w.mu.Unlock()
			for _, c := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(c[0], c[1])
					c[0].Close()
				}()
			}
		}
	}()
}

func (w *way) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener.Close()
	for _, c := range w.connections {
		c.Close()
	}
	w.connections = nil
}
