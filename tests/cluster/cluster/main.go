// Command cluster is all of Kubernetes that a test cluster runs, in one binary: it is built from
// the Go modules, as there may be no registry to take images from. Its first argument names the
// component, and the rest are that component's own.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"notebox/tests/cluster/pki"
	"notebox/tests/cluster/policies"

	// Metrics and log formats, which each component's own main takes in too.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	components := map[string]func() *cobra.Command{
		"apiserver":          apiserver.NewAPIServerCommand,
		"controller-manager": controllers.NewControllerManagerCommand,
		"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":            func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"proxy":              proxy.NewProxyCommand,
		"kubectl":            kubectl.NewDefaultKubectlCommand,
		"pki":                pkiCommand,
		"policies":           policiesCommand,
	}
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cluster apiserver|controller-manager|scheduler|kubelet|proxy|kubectl|pki|policies ARGUMENT…")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	os.Exit(cli.Run(components[name]()))
}

// pkiCommand makes the certificates.
func pkiCommand() *cobra.Command {
	var config pki.Config
	command := &cobra.Command{
		Use:          "pki DIR",
		Short:        "Makes the certificates and kubeconfigs of a test cluster",
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(_ *cobra.Command, args []string) error {
			config.Dir = args[0]
			return pki.Write(config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Server, "server", "", "address of the API server")
	flags.StringVar(&config.Port, "port", "6443", "port of the API server")
	flags.StringVar(&config.ServiceIP, "service-ip", "", `address of the Service "kubernetes"`)
	flags.StringToStringVar(&config.Nodes, "node", nil, "NAME=ADDRESS of a node; more than once")
	return command
}

// policiesCommand enforces NetworkPolicies on a node.
func policiesCommand() *cobra.Command {
	var kubeconfig, node, services string
	command := &cobra.Command{
		Use:          "policies",
		Short:        "Enforces NetworkPolicies on the node where it runs",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return policies.Run(command.Context(), kubeconfig, node, services)
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "how to call the API server")
	flags.StringVar(&node, "node", "", "name of the node")
	flags.StringVar(&services, "services", "", "network of the Services' addresses")
	return command
}
