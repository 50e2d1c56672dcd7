package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
)

// api is what the engine asks of a cluster.
type api struct {
	pods      pods
	mayCreate func(context.Context) error // nil if pods may be created
	// attach copies a container's streams, which o names, until they end or ctx does.
	attach func(ctx context.Context, pod string, o remotecommand.StreamOptions) error
}

// pods are those of one namespace, as client-go's PodInterface has them.
type pods interface {
	Create(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error)
	Get(context.Context, string, metav1.GetOptions) (*corev1.Pod, error)
	List(context.Context, metav1.ListOptions) (*corev1.PodList, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// client is the API for pods. client-go's own clients bring the types of every API there is into
// the program, which are tens of MB.
type client struct {
	rest      rest.Interface
	parameter runtime.ParameterCodec
	namespace string
}

// connect returns the API of a cluster: of the kubeconfig, or of the one around this process, or
// that which kubectl would use.
func connect(kubeconfig, namespace string) (api, error) {
	config, own, err := configuration(kubeconfig)
	if err != nil {
		return api{}, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme)); err != nil {
		return api{}, err
	}
	config.QPS = -1 // the API server has turns of its own
	config.UserAgent = "notebox"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	of := func(group, prefix string) (rest.Interface, error) {
		c := rest.CopyConfig(config)
		version := corev1.SchemeGroupVersion
		version.Group = group
		c.GroupVersion, c.APIPath = &version, prefix
		return rest.RESTClientFor(c)
	}
	core, err := of("", "/api")
	if err != nil {
		return api{}, err
	}
	authorization, err := of(authorizationv1.GroupName, "/apis")
	if err != nil {
		return api{}, err
	}
	if namespace == "" {
		namespace = own
	}
	c := &client{core, runtime.NewParameterCodec(scheme), namespace}
	return api{
		pods:      c,
		mayCreate: func(ctx context.Context) error { return mayCreate(ctx, authorization, namespace) },
		attach: func(ctx context.Context, pod string, o remotecommand.StreamOptions) error {
			return attach(ctx, config, c.attachURL(pod), o)
		},
	}, nil
}

// configuration also returns the namespace that it names.
func configuration(kubeconfig string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	namespace, _, err := loaded.Namespace() // in a pod its own, unless a file names another
	if err != nil {
		return nil, "", err
	}
	if kubeconfig == "" {
		if config, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			return config, namespace, err
		}
	}
	config, err := loaded.ClientConfig()
	return config, namespace, err
}

func mayCreate(ctx context.Context, c rest.Interface, namespace string) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "pods"},
	}}
	if err := c.Post().Resource("selfsubjectaccessreviews").Body(review).Do(ctx).Into(review); err != nil {
		return fmt.Errorf("ask for access: %w", err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%w in the namespace %s: %s", errForbidden, namespace, review.Status.Reason)
	}
	return nil
}

func (c *client) on(r *rest.Request) *rest.Request {
	return r.Namespace(c.namespace).Resource("pods")
}

func (c *client) attachURL(pod string) *url.URL {
	return c.on(c.rest.Get()).Name(pod).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: containerName, Stdin: true, Stdout: true, Stderr: true}, c.parameter).URL()
}

func (c *client) Create(ctx context.Context, pod *corev1.Pod, o metav1.CreateOptions) (*corev1.Pod, error) {
	out := new(corev1.Pod)
	return out, c.on(c.rest.Post()).VersionedParams(&o, c.parameter).Body(pod).Do(ctx).Into(out)
}

func (c *client) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Pod, error) {
	out := new(corev1.Pod)
	return out, c.on(c.rest.Get()).Name(name).VersionedParams(&o, c.parameter).Do(ctx).Into(out)
}

func (c *client) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	out := new(corev1.PodList)
	return out, c.on(c.rest.Get()).VersionedParams(&o, c.parameter).Do(ctx).Into(out)
}

func (c *client) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.on(c.rest.Get()).VersionedParams(&o, c.parameter).Watch(ctx)
}

func (c *client) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	out := new(corev1.Pod)
	return out, c.on(c.rest.Patch(kind)).Name(name).SubResource(subresources...).VersionedParams(&o, c.parameter).Body(data).Do(ctx).Into(out)
}

func (c *client) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return c.on(c.rest.Delete()).Name(name).Body(&o).Do(ctx).Error()
}
