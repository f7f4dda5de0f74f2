// Tests of flags, rows, turns, raw lines, and of one small run. Nothing here judges a time.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/cli"
)

func TestFlags(t *testing.T) {
	for args, said := range map[string]string{
		"--pairs=0": "--pairs", "--pairs=101": "--pairs", "--duration=1ms": "--duration",
		"--only=no-such": `no row begins with "no-such"`, "--no-such": "unknown flag",
	} {
		var out, errs bytes.Buffer
		require.Equal(t, exitUsage, execute([]string{args}, &out, &errs), args)
		require.Contains(t, errs.String(), said)
		require.Empty(t, out.String())
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitUsage, execute([]string{"--base=x", "--base-dir=."}, &out, &errs))
	require.Equal(t, exitUsage, execute([]string{"--advance", "--only=ring"}, &out, &errs))
	require.Equal(t, exitOK, execute([]string{"--list"}, &out, &errs))
	require.Contains(t, out.String(), "memory-1m")
	require.Equal(t, exitFailed, execute([]string{"--base=no-such-commit"}, &out, &errs))
	require.Contains(t, errs.String(), `commit "no-such-commit"`)
}

func TestWantedRows(t *testing.T) {
	names := func(only ...string) (out []string) {
		rows, err := wanted(only)
		require.NoError(t, err)
		for _, r := range rows {
			out = append(out, r.name)
		}
		return out
	}
	require.Len(t, names(), len(allRows))
	require.Equal(t, []string{"tell-remote-inline", "ring-inline", "ring-worker", "ring-blocking"},
		names("ring", "tell-remote-inline"))
	_, err := wanted([]string{"ring", ""})
	require.Error(t, err)
	seen := map[string]bool{}
	for i, r := range allRows {
		require.False(t, seen[r.name], r.name)
		require.NotEmpty(t, r.what)
		seen[r.name] = true
		if i > 0 && r.crew != allRows[i-1].crew { // a crew is started once a pair
			for _, later := range allRows[i:] {
				require.NotSame(t, allRows[i-1].crew, later.crew)
			}
		}
	}
}

// Each build is measured first, and after each other one, equally often.
func TestTurns(t *testing.T) {
	for _, builds := range [][]build{{{Name: "a"}, {Name: "b"}}, {{Name: "a"}, {Name: "b"}, {Name: "c"}}} {
		orders := map[string]int{}
		const turns = 60
		for n := range turns {
			order := ""
			for _, b := range turn(builds, n) {
				order += b.Name
			}
			require.Len(t, order, len(builds))
			orders[order]++
		}
		want := map[int]int{2: 2, 3: 6}[len(builds)]
		require.Len(t, orders, want)
		for order, n := range orders {
			require.Equal(t, turns/want, n, order)
		}
	}
}

func TestRawLinesAreGoneOnWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "raw.jsonl")
	builds := []build{{Name: headName, Sum: "1"}, {Name: baseName, Sum: "2"}}
	open := func() *raw {
		r, err := openRaw(path, builds, time.Second)
		require.NoError(t, err)
		return r
	}
	r := open()
	require.Zero(t, r.last())
	first := sample{Pair: 1, Build: headName, Row: "ring-inline", Value: 5, CPU: 2, More: map[string]float64{"x": 1}}
	require.NoError(t, r.add(first))
	r.close()

	r = open()
	require.Equal(t, 1, r.last())
	second := sample{Pair: 2, Build: baseName, Row: "ring-inline", Value: 6}
	require.NoError(t, r.add(second))
	r.close()
	r = open()
	require.Equal(t, []sample{first, second}, r.samples)
	r.close()

	_, err := openRaw(path, builds, 2*time.Second)
	require.ErrorContains(t, err, "--duration")
	_, err = openRaw(path, []build{builds[0], {Name: baseName, Sum: "3"}}, time.Second)
	require.ErrorContains(t, err, "other builds")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	_, err = openRaw(path, builds, time.Second)
	require.ErrorContains(t, err, "empty")
}

// A tree is held against itself: programs are built by overlay, crews of one and of two processes measure, and the last
// line tells of it.
func TestLongGateAgainstItself(t *testing.T) {
	long.Test(t)
	dir := t.TempDir()
	var out, errs bytes.Buffer
	code := execute([]string{"--base-dir=../..", "--fixed=-", "--only=tell-remote-worker,ask256-remote-blocking," +
		"ask1-local,ring-inline", "--pairs=2", "--duration=100ms", "--raw=" + filepath.Join(dir, "raw.jsonl"),
		"--profile=" + dir}, &out, &errs)
	require.Equal(t, exitOK, code, errs.String())
	var line gateLine
	require.NoError(t, cli.ParseLine(out.Bytes(), "gate", &line))
	require.Len(t, line.Rows, 5)
	for _, r := range line.Rows {
		require.Equal(t, 2, r.Pairs, r.Row)
		require.Positive(t, r.Ratio, r.Row)
		require.Positive(t, r.CPURatio, r.Row)
		require.LessOrEqual(t, r.Least, r.Most, r.Row)
	}
	require.Positive(t, line.Mean)
	require.Nil(t, line.Fixed)
	require.FileExists(t, filepath.Join(dir, "tell-remote-worker-head-sender.prof"))
}
