// Kubernetes: the pods of a label, from the API of the cluster that this pod runs in.

package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/kith-io/kith/internal/base/kubeapi"
)

// Bounds of what the API answers.
const (
	maxPodList = 32 << 20
	maxParts   = 64 // of one list; a part may be empty
)

// KubernetesConfig says which pods are contact points. Selector is needed; what else is empty is found where a pod has
// it. The pod's service account must be allowed to list pods of its namespace.
type KubernetesConfig struct {
	// Selector selects pods by their labels, such as "app=orders".
	Selector string
	// Namespace of the pods; empty: this pod's.
	Namespace string
	// PortName is the name of the container port that is the contact point. Pods without it do not count. Empty: Port.
	PortName string
	// Port of the contact points where PortName is empty; zero: the caller's own.
	Port uint16

	// APIServer is the URL of the API, https; empty: that of the environment (KUBERNETES_SERVICE_HOST and _PORT).
	APIServer string
	// Directory holds the files token, ca.crt and namespace; empty: the service account's. They are read at each look-up,
	// for they are replaced while the pod runs.
	Directory string
}

type kubernetes struct {
	KubernetesConfig
	api *kubeapi.API
}

// Kubernetes returns a Discovery that lists the running pods of a label, ready or not: a node becomes ready by joining.
// Pods that are being deleted, have no address yet or have ended do not count, nor does one when its node's container
// has ended or waits to be started again (CrashLoopBackOff). Errors wrap ErrBadConfig.
func Kubernetes(cfg KubernetesConfig) (Discovery, error) {
	var errs []error
	if cfg.Selector == "" || len(cfg.Selector) > 1024 {
		errs = append(errs, errors.New("the label selector must have 1 to 1024 bytes"))
	}
	if cfg.PortName != "" && cfg.Port != 0 {
		errs = append(errs, errors.New("a port and the name of one"))
	}
	api, err := kubeapi.New(cfg.APIServer, cfg.Directory)
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return nil, fmt.Errorf("%w: Kubernetes: %w", ErrBadConfig, errors.Join(errs...))
	}
	return &kubernetes{KubernetesConfig: cfg, api: api}, nil
}

// podList is what is read of an answer.
type podList struct {
	Kind     string
	Metadata struct{ Continue string }
	Items    []pod
}

type pod struct {
	Metadata struct {
		DeletionTimestamp string
	}
	Spec struct {
		Containers     []container
		InitContainers []container // those that are restarted always run beside the others: native sidecars
	}
	Status struct {
		Phase                 string
		PodIP                 string
		ContainerStatuses     []containerStatus
		InitContainerStatuses []containerStatus
	}
}

type container struct {
	Name          string
	RestartPolicy string
	Ports         []struct {
		Name          string
		ContainerPort int
	}
}

// containerStatus is what is known of a container; of its states the one that it is in is there.
type containerStatus struct {
	Name  string
	State struct{ Waiting, Running, Terminated *struct{} }
}

// rests reports whether a container is known not to run: it has ended, or waits to be started again.
func (p *pod) rests(name string) bool {
	return slices.ContainsFunc(slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses),
		func(s containerStatus) bool {
			return s.Name == name && (s.State.Waiting != nil || s.State.Terminated != nil)
		})
}

// lasting returns the containers that run as long as the pod does.
func (p *pod) lasting() []container {
	sidecars := slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), func(c container) bool {
		return c.RestartPolicy != "Always"
	})
	return append(sidecars, p.Spec.Containers...)
}

// Lookup lists the pods.
func (k *kubernetes) Lookup(ctx context.Context) ([]Target, error) {
	list, err := k.pods(ctx)
	if err != nil {
		return nil, fmt.Errorf("discovery: kubernetes: %w", err)
	}
	var found []Target
	for i := range list {
		if t, ok := k.target(&list[i]); ok {
			found = append(found, t)
		}
	}
	return Normalize(found)
}

// target returns the contact point of a pod, false when it has none.
func (k *kubernetes) target(p *pod) (Target, bool) {
	if p.Metadata.DeletionTimestamp != "" || p.Status.Phase != "Running" || p.Status.PodIP == "" {
		return Target{}, false
	}
	t := Target{Host: p.Status.PodIP, Port: k.Port}
	if k.PortName == "" { // whichever container it is: one of them runs
		runs := func(c container) bool { return !p.rests(c.Name) }
		return t, len(p.Spec.Containers) == 0 || slices.ContainsFunc(p.Spec.Containers, runs)
	}
	for _, c := range p.lasting() {
		for _, port := range c.Ports {
			if port.Name == k.PortName && port.ContainerPort > 0 && port.ContainerPort < 1<<16 && !p.rests(c.Name) {
				t.Port = uint16(port.ContainerPort)
				return t, true
			}
		}
	}
	return Target{}, false
}

// pods asks the API until it has named all: it may name them in parts, of any size.
func (k *kubernetes) pods(ctx context.Context) (all []pod, err error) {
	next := ""
	for range maxParts {
		part, err := k.part(ctx, next)
		if err != nil {
			return nil, err
		}
		if all = append(all, part.Items...); len(all) > MaxTargets {
			return nil, tooMany(len(all))
		}
		if next = part.Metadata.Continue; next == "" {
			return all, nil
		}
	}
	return nil, errors.New("the list of pods does not end")
}

// part asks the API for those that follow a token, for the first ones without one.
func (k *kubernetes) part(ctx context.Context, next string) (list podList, err error) {
	namespace, err := k.api.Namespace(k.Namespace)
	if err != nil {
		return list, err
	}
	query := url.Values{"labelSelector": {k.Selector}, "limit": {fmt.Sprint(MaxTargets + 1)}}
	if next != "" {
		query.Set("continue", next)
	}
	a, err := k.api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Query: query, Most: maxPodList,
		Path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"})
	if err != nil {
		return list, refusal(err)
	}
	if err := json.Unmarshal(a.Body, &list); err != nil {
		return list, fmt.Errorf("the answer is no list of pods: %w", err)
	}
	if list.Kind != "PodList" {
		return list, fmt.Errorf("the answer is no list of pods but %q", cut(list.Kind))
	}
	return list, nil
}

// refusal says what may be missing where the API gave no list.
func refusal(err error) error {
	var r *kubeapi.Refused
	if errors.As(err, &r) && (r.Code == http.StatusUnauthorized || r.Code == http.StatusForbidden) {
		return fmt.Errorf("%w: may the service account list pods here?", err)
	}
	return err
}
