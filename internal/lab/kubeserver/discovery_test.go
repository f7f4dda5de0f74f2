//go:build linux

// Pods of a real Kubernetes: which are contact points, lists in parts, what the role of the manifests allows (BOOT-1).

package kubeserver_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/lab/kubeserver"
)

// object is JSON.
type object = map[string]any

// pod is one that a test makes. There is no kubelet: what a pod's status says is what the test writes.
type pod struct {
	name, ip string
	port     int
	phase    string // empty: nobody has written a status
	state    object // of the container of the node; nil: it runs
	sidecar  bool   // the node is an init container that is restarted always
}

// make makes it in a namespace, and writes its status.
func (p pod) make(t *testing.T, s *kubeserver.Server, namespace string) {
	t.Helper()
	node := object{"name": "node", "image": "x", "ports": []object{{"name": "contact", "containerPort": p.port}}}
	spec := object{"nodeName": "somewhere", "containers": []object{{"name": "side", "image": "x"}, node}}
	statuses := "containerStatuses"
	if p.sidecar {
		node["restartPolicy"], statuses = "Always", "initContainerStatuses"
		spec["containers"], spec["initContainers"] = []object{{"name": "side", "image": "x"}}, []object{node}
	}
	at := "/api/v1/namespaces/" + namespace + "/pods"
	send := func(method, path, as string, body object) {
		text, err := json.Marshal(body)
		require.NoError(t, err)
		_, err = s.Must(within2min(t), kubeserver.Request{Method: method, Path: path, Type: as, Body: text})
		require.NoError(t, err)
	}
	meta := object{"name": p.name, "labels": object{"app": "orders"}}
	send(http.MethodPost, at, "", object{"metadata": meta, "spec": spec})
	if p.phase == "" {
		return
	}
	state := p.state
	if state == nil {
		state = object{"running": object{}}
	}
	status := object{"phase": p.phase, statuses: []object{{"name": "node", "image": "x", "imageID": "", "ready": false,
		"restartCount": 7, "state": state}}}
	if p.ip != "" {
		status["podIP"], status["podIPs"] = p.ip, []object{{"ip": p.ip}}
	}
	send(http.MethodPatch, at+"/"+p.name+"/status", "application/merge-patch+json", object{"status": status})
}

// pods looks pods up as an account.
func pods(t *testing.T, at, dir string) discovery.Discovery {
	t.Helper()
	d, err := discovery.Kubernetes(discovery.KubernetesConfig{Selector: "app=orders", PortName: "contact",
		APIServer: at, Directory: dir})
	require.NoError(t, err)
	return d
}

// found looks up once.
func found(t *testing.T, d discovery.Discovery) (list []string) {
	t.Helper()
	targets, err := d.Lookup(within2min(t))
	require.NoError(t, err)
	for _, target := range targets {
		list = append(list, target.String())
	}
	return list
}

// Running pods are contact points, ready or not; those that have ended, wait in a crash loop, have no address or are
// being deleted are none. A list that comes in parts is the whole.
func TestPods(t *testing.T) {
	s := need(t)
	name, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	crashed := object{"waiting": object{"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting"}}
	ended := object{"terminated": object{"exitCode": 3, "reason": "Error"}}
	d := pods(t, s.URL(), dir)
	await(t, func() bool { _, err := d.Lookup(within2min(t)); return err == nil }) // the role has come to the server
	require.Empty(t, found(t, d))
	for _, p := range []pod{
		{name: "one", ip: "10.0.0.1", port: 7627, phase: "Running"},
		{name: "two", ip: "10.0.0.2", port: 7628, phase: "Running"},
		{name: "loops", ip: "10.0.0.3", port: 7627, phase: "Running", state: crashed},
		{name: "ended", ip: "10.0.0.4", port: 7627, phase: "Running", state: ended},
		{name: "done", ip: "10.0.0.5", port: 7627, phase: "Succeeded", state: ended},
		{name: "pending", ip: "10.0.0.6", port: 7627, phase: "Pending"}, {name: "nowhere", port: 7627},
		{name: "addressless", port: 7627, phase: "Running"},
		{name: "sidecar", ip: "10.0.0.7", port: 7627, phase: "Running", sidecar: true},
		{name: "loopcar", ip: "10.0.0.8", port: 7627, phase: "Running", sidecar: true, state: crashed},
		{name: "goes", ip: "10.0.0.9", port: 7627, phase: "Running"},
		{name: "six", ip: "fd00::6", port: 7627, phase: "Running"},
	} {
		p.make(t, s, name)
	}
	want := []string{"10.0.0.1:7627", "10.0.0.2:7628", "10.0.0.7:7627", "10.0.0.9:7627", "[fd00::6]:7627"}
	require.Equal(t, want, found(t, d))
	require.NoError(t, s.Delete(within2min(t), "/api/v1/namespaces/"+name+"/pods/goes")) // its kubelet would end it
	want = append(want[:3:3], want[4])
	require.Equal(t, want, found(t, d))

	var parts atomic.Int32
	at, to := front(t, s, dir, func(q *http.Request) func() {
		query := q.URL.Query()
		if query.Set("limit", "3"); query.Has("continue") {
			parts.Add(1)
		}
		q.URL.RawQuery = query.Encode()
		return nothing
	})
	require.Equal(t, want, found(t, pods(t, at, to)))
	require.EqualValues(t, 3, parts.Load(), "twelve pods in parts of three")
	atOld, toOld := front(t, s, dir, func(q *http.Request) func() {
		q.URL.RawQuery = url.Values{"limit": {"3"}, "continue": {"bm9uZQ"}}.Encode()
		return nothing
	})
	_, err := pods(t, atOld, toOld).Lookup(within2min(t))
	require.ErrorContains(t, err, "continue")
}

// More pods than a look-up may name are an error, not a part of them.
func TestTooManyPods(t *testing.T) {
	s := need(t)
	name, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	for i := range discovery.MaxTargets + 1 {
		pod{name: fmt.Sprint("p-", i), port: 7627}.make(t, s, name)
	}
	_, err := pods(t, s.URL(), dir).Lookup(within2min(t))
	require.ErrorIs(t, err, discovery.ErrTooManyTargets)
}

// Without the verb that the role of the manifests has a look-up says what the account may need.
func TestRoleOfPods(t *testing.T) {
	s := need(t)
	role := manifest(t, "rbac.yaml")
	less := strings.Replace(role, "verbs: [list]", "verbs: [get, watch]", 1)
	require.NotEqual(t, role, less)
	_, dir := namespace(t, s, less)
	_, err := pods(t, s.URL(), dir).Lookup(within2min(t))
	require.ErrorContains(t, err, "may the service account list pods here?")
	require.ErrorContains(t, err, "403")
}

// Three nodes find each other as pods of the server, form one cluster, and hold sessions in leases of it: they stand
// still while it is away, and go on when it is back (BOOT-2, MEM-10).
func TestNodes(t *testing.T) {
	s := need(t)
	name, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	var all []*bootstrap.Bootstrap
	for i := range 3 {
		at := port.Keep(t)
		_, text, _ := strings.Cut(at, ":")
		number, err := strconv.Atoi(text)
		require.NoError(t, err)
		pod{name: fmt.Sprint("kith-", i), ip: "127.0.0.1", port: number, phase: "Running"}.make(t, s, name)
		session := kith.Session{Service: leases(t, s.URL(), dir, 5*time.Second),
			Ends: leases(t, s.URL(), dir, 10*time.Minute)}
		b, err := bootstrap.Start(t.Context(), kith.Config{Logger: slog.New(slog.DiscardHandler),
			Sharding: kith.Sharding{Session: session}},
			bootstrap.Config{Discovery: pods(t, s.URL(), dir), Listen: at, Expected: 3, Margin: 200 * time.Millisecond})
		require.NoError(t, err)
		t.Cleanup(func() { _ = b.Node().Close() })
		all = append(all, b)
	}
	ids := map[uint64]bool{}
	for _, b := range all {
		require.NoError(t, b.Node().Ready(within2min(t)), "%+v", b.Explain())
		ids[b.Node().View().ClusterID] = true
	}
	require.Len(t, ids, 1)
	ready := func(want bool) func() bool {
		return func() bool {
			for _, b := range all {
				if b.Node().Health().Ready() != want {
					return false
				}
			}
			return true
		}
	}
	goOn := pause(t, s.Signal)
	await(t, ready(false))
	goOn()
	await(t, ready(true))
	s.Stop(syscall.SIGKILL)
	await(t, ready(false))
	require.NoError(t, s.Start())
	await(t, ready(true))
	for _, b := range all {
		require.NoError(t, b.Node().Err())
		require.Len(t, b.Node().View().Members, 3)
	}
}
