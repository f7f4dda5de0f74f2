// Tests of leases in Kubernetes, against a server that does what the API does (MEM-10).

package lease

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/sbr/leasetest"
)

// kubeAPI is a server that has the leases of the namespace shop.
type kubeAPI struct {
	*httptest.Server
	dir string

	mu      sync.Mutex
	token   string
	leases  map[string]map[string]any
	version int
	ahead   time.Duration // of the server's clock, before that of the machine
	code    int           // of every answer; zero: what is right
	mute    bool          // it has no Date
	hold    func(q *http.Request) (before func(), after func())
	asked   map[string]int
}

func serveLeases(t *testing.T) *kubeAPI {
	a := &kubeAPI{dir: t.TempDir(), token: "first", leases: map[string]map[string]any{}, asked: map[string]int{}}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	for name, text := range map[string]string{"ca.crt": string(ca), "token": "first\n", "namespace": "shop"} {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600))
	}
	return a
}

func (a *kubeAPI) open(t *testing.T, ttl time.Duration) *Kubernetes {
	k, err := OpenKubernetes(KubernetesConfig{APIServer: a.URL, Directory: a.dir, TTL: ttl})
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// fail answers as the API does when it refuses.
func fail(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"message": reason, "reason": reason, "code": code})
}

func (a *kubeAPI) serve(w http.ResponseWriter, q *http.Request) {
	var body map[string]any
	if q.Body != nil {
		_ = json.NewDecoder(q.Body).Decode(&body) // empty for GET
	}
	a.mu.Lock()
	hold := a.hold
	a.mu.Unlock()
	after := func() {}
	if hold != nil {
		before, then := hold(q)
		before()
		after = then
	}
	rec := httptest.NewRecorder()
	a.mu.Lock()
	a.do(rec, q, body)
	if rec.Header().Set("Date", time.Now().Add(a.ahead).UTC().Format(http.TimeFormat)); a.mute {
		rec.Header()["Date"] = nil
	}
	a.mu.Unlock()
	after()
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// do answers one request. It holds a.mu.
func (a *kubeAPI) do(w http.ResponseWriter, q *http.Request, body map[string]any) {
	a.asked[q.Method]++
	const path = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
	name := strings.TrimPrefix(strings.TrimPrefix(q.URL.Path, path), "/")
	is := a.leases[name]
	switch {
	case q.Header.Get("Authorization") != "Bearer "+a.token:
		fail(w, http.StatusUnauthorized, "Unauthorized")
	case a.code != 0:
		fail(w, a.code, http.StatusText(a.code))
	case !strings.HasPrefix(q.URL.Path, path):
		fail(w, http.StatusNotFound, "NotFound")
	case q.Method == http.MethodPost && q.URL.Path == path:
		a.create(w, body)
	case is == nil:
		fail(w, http.StatusNotFound, "NotFound")
	case q.Method == http.MethodPut:
		a.update(w, name, body)
	default:
		_ = json.NewEncoder(w).Encode(is)
	}
}

func (a *kubeAPI) create(w http.ResponseWriter, body map[string]any) {
	meta := body["metadata"].(map[string]any)
	name := meta["name"].(string)
	if a.leases[name] != nil {
		fail(w, http.StatusConflict, "AlreadyExists")
		return
	}
	a.version++
	meta["resourceVersion"], meta["uid"], meta["namespace"] = strconv.Itoa(a.version), "u-"+name, "shop"
	a.leases[name] = body
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(body)
}

func (a *kubeAPI) update(w http.ResponseWriter, name string, body map[string]any) {
	was := a.leases[name]["metadata"].(map[string]any)
	if body["metadata"].(map[string]any)["resourceVersion"] != was["resourceVersion"] {
		fail(w, http.StatusConflict, "Conflict")
		return
	}
	if !reflect.DeepEqual(a.leases[name], body) { // what changes nothing has no new version
		a.version++
		body["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(a.version)
		a.leases[name] = body
	}
	_ = json.NewEncoder(w).Encode(body)
}

// change runs with a's lock.
func (a *kubeAPI) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func TestKubernetes(t *testing.T) {
	a := serveLeases(t)
	with := func(ttl time.Duration) func(t *testing.T) leasetest.Lease {
		return func(t *testing.T) leasetest.Lease { return a.open(t, ttl) }
	}
	leasetest.Run(t, with(0))
	leasetest.RunNames(t, with(0))
	leasetest.RunEnds(t, 2*time.Second, with(1500*time.Millisecond))
	require.Equal(t, 2*time.Second, a.open(t, 1500*time.Millisecond).TTL())
	for name := range a.leases {
		require.Regexp(t, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, name)
		require.LessOrEqual(t, len(name), 63)
	}
}

func acquires(t *testing.T, k *Kubernetes, owner string, want bool) {
	t.Helper()
	ok, err := k.Acquire(context.Background(), "n", owner)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

// Only the server's clock counts, in whichever direction it is set; what others keep in the object stays.
func TestKubernetesClock(t *testing.T) {
	api := serveLeases(t)
	a, b := api.open(t, time.Hour), api.open(t, time.Hour)
	acquires(t, a, "a", true)
	api.change(func() {
		meta := api.leases[objectName("n")]["metadata"].(map[string]any)
		meta["labels"] = map[string]any{"app": "orders"}
		api.ahead = -time.Hour
	})
	acquires(t, b, "b", false)
	api.change(func() { api.ahead = 59 * time.Minute })
	acquires(t, b, "b", false)
	api.change(func() { api.ahead = 61 * time.Minute })
	acquires(t, b, "b", true)
	acquires(t, a, "a", false)
	is := api.leases[objectName("n")]
	require.Equal(t, map[string]any{"app": "orders"}, is["metadata"].(map[string]any)["labels"])
	require.EqualValues(t, 2, is["spec"].(map[string]any)["leaseTransitions"])
	api.change(func() { api.mute = true })
	_, err := a.Acquire(context.Background(), "n", "a")
	require.ErrorContains(t, err, "what time it is")
}

// The token is read with each request; what the service account may not do, a namespace that is not there, an API that
// is broken or away, and an object of somebody else are errors that say so.
func TestKubernetesRefusals(t *testing.T) {
	api := serveLeases(t)
	k := api.open(t, 0)
	acquires(t, k, "a", true)
	api.change(func() { api.token = "second" })
	_, err := k.Acquire(context.Background(), "n", "a")
	require.ErrorContains(t, err, "401")
	require.NoError(t, os.WriteFile(filepath.Join(api.dir, "token"), []byte("second"), 0o600))
	acquires(t, k, "a", true)
	for code, want := range map[int]string{403: "get, create and update", 500: "500", 503: "503", 429: "429"} {
		api.change(func() { api.code = code })
		_, err = k.Acquire(context.Background(), "n", "a")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, k.Release(context.Background(), "n", "a"), want)
	}
	api.change(func() { api.code = 0 })
	none, err := OpenKubernetes(KubernetesConfig{APIServer: api.URL, Directory: api.dir, Namespace: "none"})
	require.NoError(t, err)
	_, err = none.Acquire(context.Background(), "n", "a")
	require.ErrorContains(t, err, "is there such a namespace?")
	api.change(func() { delete(api.leases[objectName("n")]["metadata"].(map[string]any), "annotations") })
	_, err = k.Acquire(context.Background(), "n", "a")
	require.ErrorIs(t, err, ErrForeign)
	api.change(func() { delete(api.leases, objectName("n")) }) // as by kubectl delete: nobody has it
	acquires(t, k, "b", true)
	api.Close()
	_, err = k.Acquire(context.Background(), "n", "b")
	require.ErrorContains(t, err, "lease: kubernetes: ")
}

// An Acquire with a lost answer that comes to pass behind the Release of its owner, changes nothing; so does a Release
// behind the next Acquire.
func TestKubernetesLateWrites(t *testing.T) {
	for name, c := range map[string]struct {
		first, then func(k *Kubernetes, ctx context.Context) error
	}{
		"acquire, release": {acquireA, releaseA}, "release, acquire": {releaseA, acquireA},
	} {
		t.Run(name, func(t *testing.T) {
			api := serveLeases(t)
			k, b := api.open(t, 0), api.open(t, 0)
			acquires(t, k, "a", true)
			if name == "acquire, release" {
				require.NoError(t, k.Release(context.Background(), "n", "a"))
			}
			came, goOn, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var once sync.Once
			api.change(func() {
				api.hold = func(q *http.Request) (before, after func()) {
					before, after = func() {}, func() {}
					if q.Method == http.MethodPut {
						once.Do(func() {
							before = func() { close(came); <-goOn }
							after = func() { close(late) }
						})
					}
					return before, after
				}
			})
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-came; cancel() }()
			require.Error(t, c.first(k, ctx))
			require.NoError(t, c.then(k, context.Background()))
			close(goOn)
			<-late
			acquires(t, b, "b", name == "acquire, release")
			require.Empty(t, k.doubt)
		})
	}
}

func acquireA(k *Kubernetes, ctx context.Context) error {
	ok, err := k.Acquire(ctx, "n", "a")
	if err == nil && !ok {
		err = ErrForeign
	}
	return err
}

func releaseA(k *Kubernetes, ctx context.Context) error { return k.Release(ctx, "n", "a") }

// Two objects of one lease there never are: a member that finds that another made it, or changed it meanwhile, looks
// again.
func TestKubernetesConflicts(t *testing.T) {
	api := serveLeases(t)
	k, other := api.open(t, 0), api.open(t, 0)
	var in bool
	api.change(func() {
		api.hold = func(q *http.Request) (before, after func()) {
			nothing := func() {}
			if q.Method == http.MethodGet || in {
				return nothing, nothing
			}
			in = true
			return func() {
				ok, err := other.Acquire(context.Background(), "n", "b")
				if err != nil || !ok {
					panic(fmt.Sprint(ok, err))
				}
			}, nothing
		}
	})
	acquires(t, k, "a", false)
	require.NoError(t, other.Release(context.Background(), "n", "b"))
	in = false
	acquires(t, k, "a", false)
	acquires(t, other, "b", true)
}

// Owners of an Acquire without an answer are kept in mind, but not without a bound.
func TestKubernetesDoubtIsBounded(t *testing.T) {
	k := serveLeases(t).open(t, 0)
	for i := range 3 * maxDoubt {
		k.doubts("n", strconv.Itoa(i), true)
	}
	require.Len(t, k.doubt, maxDoubt)
}

func TestKubernetesConfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := OpenKubernetes(KubernetesConfig{TTL: -1})
	require.ErrorIs(t, err, ErrBadConfig)
	require.ErrorContains(t, err, "KUBERNETES_SERVICE_HOST")
	require.ErrorContains(t, err, "must be 1s to 24h")
	api := serveLeases(t)
	s, err := Open(context.Background(), "kubernetes://shop?ttl=30s&api-server="+api.URL+"&account="+api.dir)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, s.TTL())
	ok, err := s.Acquire(context.Background(), "n", "a")
	require.True(t, ok && err == nil, err)
}
