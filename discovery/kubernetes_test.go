// Tests of the Kubernetes API against a server that speaks its JSON (BOOT-1).

package discovery_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/discovery/discoverytest"
)

// object is JSON.
type object = map[string]any

// podJSON is a pod as the API writes one.
func podJSON(phase, ip string, port int) object {
	return object{"metadata": object{"name": "p", "namespace": "shop", "labels": object{"app": "orders"}},
		"spec": object{"containers": []object{{"name": "side"}, {"name": "node", "ports": []object{
			{"name": "wire", "containerPort": 7355, "protocol": "TCP"}, {"name": "contact", "containerPort": port}}}}},
		"status": object{"phase": phase, "podIP": ip, "podIPs": []object{{"ip": ip}}}}
}

// api is a server that answers for the pods of a namespace.
type api struct {
	*httptest.Server
	dir   string
	token string
	body  atomic.Pointer[[]byte]
	code  int
	asked atomic.Int32
}

func serveAPI(t *testing.T, pods ...object) *api {
	t.Helper()
	a := &api{dir: t.TempDir(), token: "first", code: http.StatusOK}
	a.list(t, pods...)
	a.Server = httptest.NewTLSServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	write(t, filepath.Join(a.dir, "ca.crt"), string(ca))
	write(t, filepath.Join(a.dir, "token"), a.token+"\n")
	write(t, filepath.Join(a.dir, "namespace"), "shop")
	return a
}

func (a *api) list(t *testing.T, pods ...object) {
	t.Helper()
	body, err := json.Marshal(object{"kind": "PodList", "apiVersion": "v1", "metadata": object{"resourceVersion": "7"},
		"items": append([]object{}, pods...)})
	require.NoError(t, err)
	a.body.Store(&body)
}

func (a *api) serve(w http.ResponseWriter, q *http.Request) {
	a.asked.Add(1)
	switch {
	case q.Header.Get("Authorization") != "Bearer "+a.token:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"Unauthorized \u001b[2J"}`))
	case q.URL.Path != "/api/v1/namespaces/shop/pods" || q.URL.Query().Get("labelSelector") != "app=orders":
		w.WriteHeader(http.StatusNotFound)
	case a.code == http.StatusFound:
		http.Redirect(w, q, "/elsewhere", a.code)
	default:
		w.WriteHeader(a.code)
		_, _ = w.Write(*a.body.Load())
	}
}

func (a *api) discovery(t *testing.T, cfg discovery.KubernetesConfig) discovery.Discovery {
	t.Helper()
	cfg.APIServer, cfg.Directory, cfg.Selector = a.URL, a.dir, "app=orders"
	d, err := discovery.Kubernetes(cfg)
	require.NoError(t, err)
	return d
}

// Pods keep the contract (BOOT-1).
func TestKubernetes(t *testing.T) {
	discoverytest.Run(t, discoverytest.Case{Empty: true, Ports: true,
		New: func(t *testing.T, targets []discovery.Target) discovery.Discovery {
			a := serveAPI(t)
			var pods []object
			for _, target := range targets {
				pods = append([]object{podJSON("Running", target.Host, int(target.Port))}, pods...)
			}
			a.list(t, pods...)
			return a.discovery(t, discovery.KubernetesConfig{PortName: "contact"})
		},
		Fail: func(t *testing.T) discovery.Discovery {
			a := serveAPI(t)
			a.Close()
			return a.discovery(t, discovery.KubernetesConfig{})
		}})
}

// Which pods count: those that run, have an address and are not being deleted, ready or not (BOOT-1).
func TestKubernetesPods(t *testing.T) {
	gone := podJSON("Running", "10.0.0.4", 7627)
	gone["metadata"].(object)["deletionTimestamp"] = "2026-11-23T09:00:00Z"
	pods := []object{podJSON("Running", "10.0.0.2", 7627), podJSON("Pending", "10.0.0.3", 7627), gone,
		podJSON("Succeeded", "10.0.0.5", 7627), podJSON("Running", "", 7627), podJSON("Running", "10.0.0.1", 7628)}
	a := serveAPI(t, pods...)
	for _, c := range []struct {
		cfg  discovery.KubernetesConfig
		want []string
	}{
		{discovery.KubernetesConfig{}, []string{"10.0.0.1", "10.0.0.2"}},
		{discovery.KubernetesConfig{Port: 9}, []string{"10.0.0.1:9", "10.0.0.2:9"}},
		{discovery.KubernetesConfig{PortName: "contact"}, []string{"10.0.0.1:7628", "10.0.0.2:7627"}},
		{discovery.KubernetesConfig{PortName: "other"}, nil},
	} {
		list, err := a.discovery(t, c.cfg).Lookup(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.want, texts(list))
	}
}

// The token is replaced while the pod runs, and so is the authority: each look-up reads them anew (BOOT-1).
func TestKubernetesRotates(t *testing.T) {
	a := serveAPI(t, podJSON("Running", "10.0.0.1", 7627))
	d := a.discovery(t, discovery.KubernetesConfig{})
	_, err := d.Lookup(t.Context())
	require.NoError(t, err)

	a.token = "second"
	_, err = d.Lookup(t.Context())
	require.ErrorContains(t, err, "401")
	require.ErrorContains(t, err, "may the service account list pods")
	require.NotContains(t, err.Error(), "\x1b", "what others wrote is escaped")
	require.NotContains(t, err.Error(), "first", "a token is in no error")
	write(t, filepath.Join(a.dir, "token"), a.token)
	_, err = d.Lookup(t.Context())
	require.NoError(t, err)

	ca, err := os.ReadFile(filepath.Join(a.dir, "ca.crt"))
	require.NoError(t, err)
	write(t, filepath.Join(a.dir, "ca.crt"), "-----BEGIN NOTHING-----\n")
	_, err = d.Lookup(t.Context())
	require.ErrorContains(t, err, "not whole")
	write(t, filepath.Join(a.dir, "ca.crt"), string(ca))
	_, err = d.Lookup(t.Context())
	require.NoError(t, err)

	require.NoError(t, os.Remove(filepath.Join(a.dir, "token")))
	_, err = d.Lookup(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What the API may answer instead of pods is an error, bounded and escaped; a redirect is not followed with the token
// (BOOT-1, SEC-5).
func TestKubernetesAnswers(t *testing.T) {
	a := serveAPI(t)
	d := a.discovery(t, discovery.KubernetesConfig{})
	answer := func(code int, body string) error {
		a.code = code
		text := []byte(body)
		a.body.Store(&text)
		asked := a.asked.Load()
		list, err := d.Lookup(t.Context())
		require.Empty(t, list)
		require.Equal(t, asked+1, a.asked.Load())
		return err
	}
	require.ErrorContains(t, answer(http.StatusOK, "{"), "no list of pods")
	require.ErrorContains(t, answer(http.StatusOK, `{"kind":"Pod"}`), `"Pod"`)
	require.ErrorContains(t, answer(http.StatusOK, `{"kind":"PodList","items":{}}`), "no list of pods")
	require.ErrorContains(t, answer(http.StatusFound, ""), "302")
	require.ErrorContains(t, answer(http.StatusForbidden, `{"message":"no\nway"}`), `403: "no\nway"`)
	require.ErrorContains(t, answer(http.StatusInternalServerError, strings.Repeat("x", 1<<20)), "500")
	require.ErrorContains(t, answer(http.StatusOK, strings.Repeat(" ", 33<<20)), "more than")
	require.ErrorIs(t, answer(http.StatusOK, `{"kind":"PodList","items":[{"status":{"phase":"Running","podIP":"a b"}}]}`),
		discovery.ErrBadTarget)
}

// The API may tell a list in parts, of any size, which are one answer; a list that does not end is an error (BOOT-1).
func TestKubernetesParts(t *testing.T) {
	parts := map[string]string{
		"":  `{"kind":"PodList","metadata":{"continue":"b"},"items":[{"status":{"phase":"Running","podIP":"10.0.0.2"}}]}`,
		"b": `{"kind":"PodList","metadata":{"continue":"c"},"items":[]}`,
		"c": `{"kind":"PodList","metadata":{},"items":[{"status":{"phase":"Running","podIP":"10.0.0.1"}}]}`,
		"e": `{"kind":"Status","message":"The provided continue parameter is too old"}`,
	}
	a := serveAPI(t)
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		next := q.URL.Query().Get("continue")
		if next == "e" {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = w.Write([]byte(parts[next]))
	})
	d := a.discovery(t, discovery.KubernetesConfig{})
	list, err := d.Lookup(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1", "10.0.0.2"}, texts(list))
	parts["b"] = `{"kind":"PodList","metadata":{"continue":"e"},"items":[]}`
	_, err = d.Lookup(t.Context())
	require.ErrorContains(t, err, "410", "half a list is none")
	parts["b"] = `{"kind":"PodList","metadata":{"continue":"b"},"items":[]}`
	_, err = d.Lookup(t.Context())
	require.ErrorContains(t, err, "does not end")
}

// A pod counts while the container that is the contact point runs, whatever runs beside it; a sidecar that is an init
// container does, too (BOOT-1).
func TestKubernetesContainers(t *testing.T) {
	ports := []object{{"name": "contact", "containerPort": 7627}}
	node := object{"name": "node", "ports": ports}
	status := func(state string) []object {
		return []object{{"name": "proxy", "state": object{"running": object{}}},
			{"name": "node", "state": object{state: object{}}}}
	}
	pod := func(ip string, spec, more object) object {
		st := object{"phase": "Running", "podIP": ip}
		for k, v := range more {
			st[k] = v
		}
		return object{"metadata": object{"name": ip}, "spec": spec, "status": st}
	}
	own, proxied := object{"containers": []object{node}}, object{"containers": []object{{"name": "proxy"}, node}}
	a := serveAPI(t, pod("10.0.0.1", own, nil),
		pod("10.0.0.2", proxied, object{"containerStatuses": status("waiting")}),
		pod("10.0.0.3", proxied, object{"containerStatuses": status("terminated")}),
		pod("10.0.0.4", proxied, object{"containerStatuses": status("running")}),
		pod("10.0.0.5", object{"containers": []object{{"name": "app"}}, "initContainers": []object{{"name": "node",
			"restartPolicy": "Always", "ports": ports}}}, nil),
		pod("10.0.0.6", object{"containers": []object{{"name": "app"}}, "initContainers": []object{{"name": "node",
			"ports": ports}}}, nil),
		pod("10.0.0.7", own, object{"containerStatuses": []object{{"name": "node", "state": object{"waiting": object{}}}}}))
	list, err := a.discovery(t, discovery.KubernetesConfig{PortName: "contact"}).Lookup(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1:7627", "10.0.0.4:7627", "10.0.0.5:7627"}, texts(list))
	list, err = a.discovery(t, discovery.KubernetesConfig{}).Lookup(t.Context())
	require.NoError(t, err)
	require.NotContains(t, texts(list), "10.0.0.7", "nothing runs there")
	require.Contains(t, texts(list), "10.0.0.2", "which container it is is not known")
}

// A server that does not answer costs the time that the caller gives.
func TestKubernetesIsSlow(t *testing.T) {
	a := serveAPI(t)
	held, ctx := make(chan struct{}), t.Context()
	a.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held })
	t.Cleanup(func() { close(held) })
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := a.discovery(t, discovery.KubernetesConfig{}).Lookup(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// All faults of a configuration at once; without a server named, the environment says where the API is.
func TestKubernetesConfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := discovery.Kubernetes(discovery.KubernetesConfig{PortName: "a", Port: 1})
	require.ErrorIs(t, err, discovery.ErrBadConfig)
	for _, want := range []string{"label selector", "a port and the name", "KUBERNETES_SERVICE_HOST"} {
		require.ErrorContains(t, err, want)
	}
	_, err = discovery.Kubernetes(discovery.KubernetesConfig{Selector: "a", APIServer: "http://here"})
	require.ErrorContains(t, err, "no https URL")

	a := serveAPI(t, podJSON("Running", "10.0.0.1", 7627))
	host, port, _ := strings.Cut(strings.TrimPrefix(a.URL, "https://"), ":")
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	d, err := discovery.Kubernetes(discovery.KubernetesConfig{Selector: "app=orders", Directory: a.dir, Namespace: "shop"})
	require.NoError(t, err)
	list, err := d.Lookup(t.Context())
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.1]", fmt.Sprint(texts(list)))
}
