// Tests of the outages without Pekko: members that this program plays, the settings, and the last line.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/internal/cli"
)

// fakeMembers is the variable that makes this program a member: a folder with a file for each that was started.
const fakeMembers = "KITH_FAKE_MEMBERS"

// fakeMember answers as a node of Pekko does. Entity n lives on the n-th of the members that live.
func fakeMember(dir string) int {
	living := func() (pids []string) {
		files, _ := filepath.Glob(filepath.Join(dir, "member-*"))
		for _, f := range files { // in the order of their starts
			pid := f[strings.LastIndex(f, "-")+1:]
			if n, _ := strconv.Atoi(pid); syscall.Kill(n, 0) == nil {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	home := func(entity string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(entity, "entity-"))
		all := living()
		return all[n%len(all)]
	}
	var watched string
	err := cli.Serve(os.Stdin, os.Stdout, cli.Ops{
		"member": cli.Op(func(context.Context, rig.DialArgs) (rig.Served, error) {
			pid := strconv.Itoa(os.Getpid())
			name := fmt.Sprintf("member-%d-%s", time.Now().UnixNano(), pid)
			return rig.Served{Addr: pid, Version: "fake"}, os.WriteFile(filepath.Join(dir, name), nil, 0o644)
		}),
		"whole": cli.Op(func(context.Context, cli.None) (wholeResult, error) { return wholeResult{len(living())}, nil }),
		"home":  cli.Op(func(_ context.Context, a entityArgs) (homeResult, error) { return homeResult{home(a.Entity)}, nil }),
		"watch": cli.Op(func(_ context.Context, a entityArgs) (cli.None, error) {
			watched = a.Entity
			return cli.None{}, nil
		}),
		"answer": cli.Op(func(ctx context.Context, a lostArgs) (answered, error) {
			if os.Remove(filepath.Join(dir, "moved")) == nil {
				return answered{Before: "another"}, nil
			}
			for home(watched) == a.Addr {
				if !cli.Pause(ctx, time.Millisecond) {
					return answered{}, ctx.Err()
				}
			}
			return answered{Before: a.Addr, From: home(watched), Unreachable: 1e6, Removed: 2e6}, nil
		}),
	})
	if err != nil {
		return 1
	}
	return 0
}

// fakeRun measures the fakes.
func fakeRun(ctx context.Context, t *testing.T, dir string, f flags) (*outageReport, string, error) {
	t.Helper()
	var notes bytes.Buffer
	f.Outages, f.Duration, f.Dir, f.Out = true, time.Millisecond, ".", t.TempDir()
	r := &run{flags: f, progress: &cli.Progress{}, notes: &notes}
	rep, err := r.outages(ctx, func(context.Context, *run) (starter, error) {
		return starter{env: []string{fakeMembers + "=" + dir}}, nil
	})
	return rep, notes.String(), err
}

// Each round loses a member, the oldest one in the case that says so, and the next one begins with five again. A round
// whose entity had moved is measured again.
func TestOutagesOfFakes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "moved"), nil, 0o644))
	rep, notes, err := fakeRun(t.Context(), t, dir, flags{Rounds: 2, Cases: []string{"owner", "coordinator"}})
	require.NoError(t, err, notes)
	require.Equal(t, 1, strings.Count(notes, "owner: measured again: "+errMoved.Error()), notes)
	require.Len(t, rep.Cases, 2)
	for name, f := range rep.Cases {
		require.Len(t, f.All, 2, name)
		require.InDelta(t, 0.001, f.Unreachable, 1e-9)
		require.InDelta(t, 0.002, f.Removed, 1e-9)
		require.Zero(t, f.Same)
	}
	started, err := filepath.Glob(filepath.Join(dir, "member-*"))
	require.NoError(t, err)
	require.Len(t, started, outageNodes+4, "five, and one for each loss but the last")
	for _, f := range started {
		pid, err := strconv.Atoi(f[strings.LastIndex(f, "-")+1:])
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "a member still runs")
	}
}

// A run that ends early, here by an interrupt, reports its whole rounds.
func TestInterruptedOutages(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for n := 0; n <= outageNodes; cli.Pause(ctx, time.Millisecond) { // the sixth is there for the second round
			started, _ := filepath.Glob(filepath.Join(dir, "member-*"))
			n = len(started)
		}
		cancel()
	}()
	rep, notes, err := fakeRun(ctx, t, dir, flags{Rounds: 100, Cases: []string{"owner"}})
	require.NoError(t, err)
	require.Positive(t, rep.Rounds)
	require.Less(t, rep.Rounds, 100)
	require.Len(t, rep.Cases["owner"].All, rep.Rounds)
	require.Contains(t, notes, fmt.Sprintf("ended after %d rounds: ", rep.Rounds))
}

func TestOutagesThatCannotBeMeasured(t *testing.T) {
	r := &run{flags: flags{Rounds: 1, Dir: ".", Out: t.TempDir()}, progress: &cli.Progress{}, notes: &bytes.Buffer{}}
	_, err := r.outages(t.Context(), func(context.Context, *run) (starter, error) { return starter{}, errors.New("no maven") })
	require.ErrorContains(t, err, "pekko cannot be built: no maven")
	_, err = r.outages(t.Context(), func(context.Context, *run) (starter, error) { return starter{path: "/bin/false"}, nil })
	require.ErrorIs(t, err, cli.ErrChildGone)
	require.ErrorContains(t, err, "round 1 of 1: owner: ")
}

// What is measured is Pekko as it comes, with the resolver that its documentation asks for: no time and no bound is ours.
func TestOutagesHavePekkosDefaults(t *testing.T) {
	b, err := os.ReadFile("pekko/outages.conf")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(string(b), "")
	require.Contains(t, text, `downing-provider-class = "org.apache.pekko.cluster.sbr.SplitBrainResolverProvider"`)
	for _, key := range []string{"failure-detector", "stable-after", "strategy", "margin", "interval", "sharding", "timeout"} {
		require.NotContains(t, text, key)
	}
}

func TestOutageReport(t *testing.T) {
	of := func(s float64, same bool) outage {
		d := time.Duration(s * float64(time.Second))
		return outage{answer: d, unreachable: d / 4, removed: d / 2, same: same}
	}
	rep := newOutageReport("1.7.0", 3, map[string][]outage{"owner": {of(44, false), of(60, false), of(40, true)}}, 3*time.Minute)
	b, err := json.Marshal(rep)
	require.NoError(t, err)
	require.JSONEq(t, `{"peer":"pekko-sharded","version":"1.7.0","nodes":5,"rounds":3,"wall_seconds":180,"cases":{"owner":{
		"p50_s":44,"max_s":60,"all_s":[44,60,40],"unreachable_s":11,"removed_s":22,"answered_itself":1}}}`, string(b))
	var shown bytes.Buffer
	rep.table(&shown, true)
	require.Equal(t, "owner       answers after 44.0 s, at most 60.0 s; unreachable after 11.0 s, removed after 22.0 s\n",
		shown.String())
}
