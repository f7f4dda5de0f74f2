// Device shadows by themselves, under a simulated partition, and as real processes.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// TestMain runs the program itself when a test started it as a child.
func TestMain(m *testing.M) {
	if os.Getenv("SHADOWS_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func parse(t *testing.T, b []byte) (s shadow) {
	require.NoError(t, json.Unmarshal(b, &s), "%s", b)
	return s
}

// The store keeps the highest fence, and refuses lower ones, whichever owner writes.
func TestStoreRefusesLateOwners(t *testing.T) {
	s, first, second := store(t.TempDir()), kith.Fence{15: 1}, kith.Fence{15: 2}
	b, err := s.Claim("a/b", first)
	require.NoError(t, err)
	require.Empty(t, b)
	require.NoError(t, s.Save("a/b", first, []byte("one")))
	b, err = s.Claim("a/b", second)
	require.NoError(t, err)
	require.Equal(t, "one", string(b))
	require.ErrorContains(t, s.Save("a/b", first, []byte("late")), "belongs to")
	_, err = s.Claim("a/b", first)
	require.ErrorContains(t, err, "belongs to")
	b, err = s.Claim("a/b", second)
	require.NoError(t, err)
	require.Equal(t, "one", string(b))
}

// One node, virtual time: what is between the desired and the reported state, and when a device is offline.
func TestShadowOfALamp(t *testing.T) {
	c := sim.New(t, 1, 1)
	c.Register(shadows(store(t.TempDir())))
	c.AwaitUp()
	ask := func(patch string) shadow {
		b, err := c.Ask(0, "shadow", "lamp", []byte(patch))
		require.NoError(t, err)
		return parse(t, b)
	}
	s := ask(`{"Desired": {"light": "on", "colour": "red"}}`)
	require.Equal(t, shadow{Version: 1, Desired: s.Desired, Reported: map[string]string{}, Delta: s.Desired}, s)
	s = ask(`{"Reported": {"light": "on"}}`)
	require.Equal(t, map[string]string{"colour": "red"}, s.Delta)
	require.Equal(t, 2, s.Version)
	c.Advance(silence - time.Second)
	require.True(t, ask(`{}`).Online)
	c.Advance(2 * time.Second)
	require.False(t, ask(`{}`).Online)
	require.Equal(t, 2, ask(`{}`).Version)
	_, err := c.Ask(0, "shadow", "lamp", []byte(`{"Desired": 1}`))
	require.ErrorIs(t, err, kith.ErrHandler)
}

// Five nodes, two of them cut off: no acknowledged change is lost, and none of an unacknowledged one counts twice.
func TestShadowsSurviveAPartition(t *testing.T) {
	c := sim.New(t, 5, 7)
	c.Register(shadows(store(t.TempDir())))
	c.AwaitUp()
	acknowledged, asked := map[string]int{}, map[string]int{}
	change := func(n int) {
		for d := range 8 {
			id := fmt.Sprint("lamp", d)
			asked[id]++
			if _, err := c.AskWithin(2*time.Second, n, "shadow", id, []byte(`{"Desired": {"light": "on"}}`)); err == nil {
				acknowledged[id]++
			}
		}
	}
	change(0)
	c.Partition([]int{0, 1}, []int{2, 3, 4})
	for n := range 5 {
		change(n)
	}
	c.Advance(60 * time.Second)
	c.AtMostOne("shadow")
	change(3)
	require.False(t, c.Running(0) || c.Running(1), "the smaller side has ended")
	c.Heal()
	c.Restart(0)
	c.Restart(1)
	c.AwaitUp()
	change(0)
	for id, least := range acknowledged {
		b, err := c.Ask(1, "shadow", id, []byte("{}"))
		require.NoError(t, err)
		got := parse(t, b).Version
		require.GreaterOrEqual(t, got, least, "%s: an acknowledged change is lost", id)
		require.LessOrEqual(t, got, asked[id], "%s: a change was made twice", id)
		require.GreaterOrEqual(t, least, 3, "%s was served before, during and after", id)
	}
}

// child is one process of the service.
type child struct {
	cmd       *exec.Cmd
	url, addr string
}

func start(t *testing.T, dir, seeds string) *child {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-store", dir, "-seeds", seeds)
	cmd.Env = append(os.Environ(), "SHADOWS_CHILD=1")
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	out := bufio.NewScanner(pipe)
	for out.Scan() {
		if _, said, found := strings.Cut(out.Text(), "serving "); found {
			url, addr, _ := strings.Cut(said, " as ")
			go func() { _, _ = io.Copy(io.Discard, pipe) }()
			return &child{cmd, url, addr}
		}
	}
	require.Fail(t, "the process ended before it served")
	return nil
}

func (c *child) do(t *testing.T, method, path, body string) (int, []byte) {
	req, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, b
}

// Three processes, one of which leaves while clients go on: every change is made once, wherever it is asked for.
func TestThreeProcessesServeShadows(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir, "")
	nodes := []*child{first, start(t, dir, first.addr), start(t, dir, first.addr)}
	changes := 0
	change := func(n *child) {
		for d := range 6 {
			code, b := http.StatusServiceUnavailable, []byte(nil)
			for tries := 0; code == http.StatusServiceUnavailable && tries < 5000; tries++ { // its shard moves: nothing was done
				code, b = n.do(t, "PATCH", fmt.Sprint("/devices/lamp", d), `{"Reported": {"light": "on"}}`)
			}
			require.Equal(t, http.StatusOK, code, "%s", b)
		}
		changes++
	}
	for _, n := range nodes {
		change(n)
	}
	code, b := nodes[1].do(t, "PATCH", "/devices/lamp1", `{"Reported": "on"}`)
	require.Equal(t, http.StatusInternalServerError, code, "%s", b)
	code, b = nodes[1].do(t, "PATCH", "/devices/lamp1", `{`)
	require.Equal(t, http.StatusBadRequest, code, "%s", b)
	code, b = nodes[1].do(t, "GET", "/ready", "")
	require.Equal(t, http.StatusOK, code, "%s", b)
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	change(nodes[1]) // meanwhile
	require.NoError(t, first.cmd.Wait(), "it leaves in order")
	change(nodes[2])
	for d := range 6 {
		code, b := nodes[1].do(t, "GET", fmt.Sprint("/devices/lamp", d), "")
		require.Equal(t, http.StatusOK, code, "%s", b)
		s := parse(t, b)
		require.Equal(t, changes, s.Version)
		require.True(t, s.Online)
	}
}
