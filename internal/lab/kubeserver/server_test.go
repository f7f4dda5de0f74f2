//go:build linux

// A real API server for the tests of this folder: what speaks the Kubernetes API is tried against it (MEM-10, BOOT-1).

package kubeserver_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/kubeserver"
)

// short is the time limit of a call that is to have no answer.
const short = 500 * time.Millisecond

// account is the one of the manifests, and where they lie.
const (
	account   = "kith"
	manifests = "../../../deploy/kubernetes"
)

// shared is the server of all tests; nil: none can be started, because of why.
var (
	shared *kubeserver.Server
	why    error
)

func TestMain(m *testing.M) { os.Exit(serve(m)) }

// serve runs the tests beside a server, and shows the end of what it and its etcd have written when one fails.
func serve(m *testing.M) (code int) {
	log, err := os.CreateTemp("", "kith-kube-log") // both write to it, at any time
	if err != nil {
		why = err
		return m.Run()
	}
	defer os.Remove(log.Name())
	if shared, why = kubeserver.New(log); why == nil {
		why = shared.Start()
	}
	if code = m.Run(); code != 0 {
		text, _ := os.ReadFile(log.Name()) // a part is better than nothing
		_, _ = os.Stderr.Write(text[max(0, len(text)-16<<10):])
	}
	if shared != nil {
		_ = shared.Remove()
	}
	return code
}

// need returns the server, or skips the test where none is installed.
func need(t *testing.T) *kubeserver.Server {
	t.Helper()
	if errors.Is(why, exec.ErrNotFound) {
		t.Skipf("no API server: %v (docs/contributing/kubernetes.md says how to build one)", why)
	}
	require.NoError(t, why)
	return shared
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func within2min(t *testing.T) context.Context { return within(t, 2*time.Minute) }

// await waits for a condition.
func await(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 2*time.Minute, 10*time.Millisecond)
}

// namespace makes one of a test's own with the account of the manifests and its role, and returns its name and the
// folder that a pod of that account sees.
func namespace(t *testing.T, s *kubeserver.Server, role string) (name, dir string) {
	t.Helper()
	name, dir = strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-"), t.TempDir()
	require.NoError(t, s.Namespace(within2min(t), name))
	require.NoError(t, s.Apply(within2min(t), name, manifest(t, "serviceaccount.yaml")))
	if role != "" {
		require.NoError(t, s.Apply(within2min(t), name, role))
	}
	require.NoError(t, s.Mount(within2min(t), dir, name, account, ""))
	return name, dir
}

// manifest reads one of deploy/kubernetes.
func manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, name))
	require.NoError(t, err)
	return string(text)
}

// The server takes each manifest of deploy/kubernetes as it stands there, without a field that it does not know.
func TestManifests(t *testing.T) {
	s := need(t)
	version, err := s.Version()
	require.NoError(t, err)
	t.Log(version)
	require.NoError(t, s.Namespace(within2min(t), "manifests"))
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 7)
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			require.NoError(t, s.Apply(within2min(t), "manifests", manifest(t, name)), name)
		}
	}
	broken := strings.Replace(manifest(t, "serviceaccount.yaml"), "automount", "autoMount", 1)
	require.ErrorContains(t, s.Apply(within2min(t), "manifests", broken), "unknown field")
}
