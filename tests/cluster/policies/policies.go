// Package policies enforces NetworkPolicies on one node of a test cluster. It is the controller of
// kube-router, which needs iptables and ipset alone; that of Kubernetes' own project needs nftables'
// queues, which some kernels lack.
package policies

import (
	"context"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// pause is between two looks for the node.
const pause = 500 * time.Millisecond

// Run enforces them until ctx ends. The kubeconfig's user lists and watches pods, namespaces and
// NetworkPolicies, and gets the node.
func Run(ctx context.Context, kubeconfig, node, services string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	settings := options.NewKubeRouterConfig()
	settings.EnableIPv4 = true
	settings.HostnameOverride = node
	settings.ClusterIPCIDRs = []string{services}

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	rules := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	// The kubelet makes the node's object, and may be later than this.
	err = wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Nodes().Get(ctx, node, meta.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return err
	}

	tables, sets, err := netpol.NewIPTablesHandlers(settings)
	if err != nil {
		return err
	}
	var lock sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, settings, pods, rules, namespaces, &lock, tables, sets)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{pods, controller.PodEventHandler},
		{namespaces, controller.NamespaceEventHandler},
		{rules, controller.NetworkPolicyEventHandler},
	} {
		if _, err := one.informer.AddEventHandler(one.handler); err != nil {
			return err
		}
	}
	beats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range beats { // nobody asks whether it lives
		}
	}()
	var group sync.WaitGroup
	group.Add(1)
	controller.Run(beats, ctx.Done(), &group)
	group.Wait()
	return nil
}
