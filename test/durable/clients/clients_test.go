// Tests of the command: what it refuses, what it counts, and a short run of real processes.

package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// TestMain lets the test binary be the program, as its own children need.
func TestMain(m *testing.M) {
	envtest.Main(m, map[string]func() int{"clients": func() int { return execute(os.Args[1:], env.Of("clients")) }})
}

func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return envtest.Run(t, execute, "clients", args...)
}

func TestWrongCommandLines(t *testing.T) {
	envtest.Wrong(t, program, [][2]string{
		{"--engine=paper", "--engine"},
		{"--nodes=2", "--nodes must be"},
		{"--clients=1", "--clients must be"},
		{"--slow=0s", "--slow must be"},
		{"--settings=fast", "\"fast\" is none of"},
		{"--events=rain", "\"rain\" is none of"},
		{"--engine=sqlite --events=store", "SQLite has no server"},
	})
}

// Requests and errands count where they ended behind the event, each at its own type of entities.
func TestRows(t *testing.T) {
	began := time.Now()
	at := func(d time.Duration) time.Time { return began.Add(d) }
	c := &clients{slow: time.Second, tries: []try{
		{at: at(-2 * time.Second), took: time.Second, status: 503},
		{at: at(-time.Second), took: 3 * time.Second, status: 504},
		{at: at(0), took: 1, status: 200, durable: true},
		{at: at(1), took: 1, status: 503, durable: true},
		{at: at(1), took: 1, durable: true},
		{at: at(1), took: 1, status: 418, durable: true},
	}, errands: []errand{
		{at: at(-9 * time.Second), took: time.Second},
		{at: at(0), took: 2 * time.Second},
		{at: at(0), took: 4 * time.Second, struck: true},
	}}
	rows := c.rows("rain", began)
	require.Len(t, rows, 2)
	require.Equal(t, row{Event: "rain", Entities: plainType, Seconds: rows[0].Seconds, Requests: 1, Unknown: 1, Slow: 1,
		Longest: 4, LongestOthers: 2}, rows[0])
	require.Equal(t, row{Event: "rain", Entities: accountType, Seconds: rows[1].Seconds, Requests: 4, OK: 1,
		Unavailable: 1, Other: 1, NoAnswer: 1}, rows[1])
	require.False(t, c.calm(at(time.Second)), "the 504 came behind it")
	require.True(t, c.calm(at(2*time.Second)))
}

// A process dies: clients are served again, and what was answered is stored once.
func TestSmoke(t *testing.T) {
	code, out, errs := program(t, "--engine=sqlite", "--nodes=3", "--clients=4", "--settings=proof",
		"--events=kill-owner", "--slow=1m")
	require.Zero(t, code, errs)
	var r Result
	require.NoError(t, cli.ParseLine([]byte(out), "clients", &r), errs)
	require.Len(t, r.Rows, 2)
	for _, x := range r.Rows {
		require.Equal(t, "kill-owner", x.Event)
		require.Positive(t, x.OK)
		require.Zero(t, x.Other, "%+v", x)
	}
	require.Zero(t, r.Lost)
}
