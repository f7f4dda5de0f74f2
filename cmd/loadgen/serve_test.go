// Tests of loadgen serve and of loads on running nodes.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// serve starts a node that hosts entities, and returns its address and how to end it.
func serve(t *testing.T, args ...string) (addr string, end func()) {
	return served(t, os.Stderr, args...)
}

func served(t *testing.T, stderr io.Writer, args ...string) (addr string, end func()) {
	t.Helper()
	cmd := envtest.Process(t, "loadgen", append([]string{"serve", "--listen=127.0.0.1:0", "--shards=10",
		"--cluster=shop"}, args...)...)
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	watchdog := time.AfterFunc(90*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { watchdog.Stop() })
	line := bufio.NewScanner(pipe)
	require.True(t, line.Scan())
	at := envtest.Last[serving](t, line.Text(), "serving")
	require.Equal(t, "shop", at.Cluster)
	return at.Addr, func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
}

// A load on running nodes: everything arrives, as the entities themselves say, load after load; what cannot be known of
// another machine's processes is absent. The nodes go on, and leave on a signal (CARD-5).
func TestRunningNodesAreTargets(t *testing.T) {
	first, endFirst := serve(t)
	_, endSecond := serve(t, "--seeds="+first)
	for _, args := range []string{"--mode=tell", "--mode=tell --inline --rate=500", "--mode=ask --inflight=4",
		"--mode=tell"} {
		l, _, _ := envtest.Line[loadLine](t, program, "load",
			append(strings.Fields("run --json --duration=200ms --entities=50 --shards=10 "+
				"--cluster=shop --target="+first), strings.Fields(args)...)...)
		require.Positive(t, l.Sent)
		require.Equal(t, l.Sent, l.Delivered+l.Refused, args)
		require.Zero(t, l.Lost+l.Failed)
		require.Equal(t, strings.Contains(args, "ask"), l.P50 > 0)
		require.Nil(t, l.AllocsReceiver)
		require.Nil(t, l.CPUReceiver)
		require.Equal(t, 1, l.Nodes)
	}
	endSecond()
	endFirst()
}

// A node that is a target tells its statistics: rates of each type, latencies of its handlers, and its links (CARD-5).
func TestTargetTellsItsStatistics(t *testing.T) {
	var told bytes.Buffer
	addr, end := served(t, &told, "--stats-every=100ms", "--latency-every=1")
	code, _, errs := program(t, "run", "--json", "--duration=1s", "--entities=50", "--shards=10", "--cluster=shop",
		"--target="+addr, "--mode=ask", "--inline")
	require.Equal(t, env.ExitOK, code, errs)
	end() // which also ends the writing
	linked, handled := false, false
	for line := range strings.Lines(told.String()) {
		text, is := strings.CutPrefix(line, "stats ")
		if !is {
			continue
		}
		var l struct {
			Types []struct {
				Type             string
				HandledPerSecond float64
				Handler          struct{ Samples int }
			}
			Stats struct {
				Transport struct {
					Links []struct {
						Data, In []struct{ Sent, Received uint64 }
					}
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		for _, link := range l.Stats.Transport.Links {
			linked = linked || len(link.Data) > 0 && link.Data[0].Sent > 0 && len(link.In) > 0 && link.In[0].Received > 0
		}
		for _, typ := range l.Types {
			handled = handled || typ.Type == "sink-inline" && typ.HandledPerSecond > 0 && typ.Handler.Samples > 0
		}
	}
	require.True(t, linked, "links")
	require.True(t, handled, "types")
}

// The error says why running nodes cannot be used: nobody there, another cluster, entities over other shards.
func TestTargetsThatAreNone(t *testing.T) {
	first, end := serve(t)
	addr := port.Keep(t)
	for cluster, target := range map[string]string{"shop": addr, "other": first} {
		_, err := startCrew(t.Context(), &env.Env{Stderr: os.Stderr, SelfEnv: envtest.Env("loadgen")},
			crewArgs{shards: 10, cluster: cluster, targets: []string{target}, limit: 4 * time.Second})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not all up within 4s")
		why := map[string]string{"shop": "connection refused", "other": `differs="cluster name"`}[cluster]
		require.ErrorContains(t, err, why)
	}
	code, out, errs := program(t, "run", "--duration=200ms", "--shards=11", "--cluster=shop", "--target="+first)
	require.Equal(t, env.ExitFailed, code)
	require.Empty(t, out)
	require.Contains(t, errs, "11 shards")
	require.Contains(t, errs, "10 shards")
	end()
}
