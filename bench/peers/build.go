// Building the programs of the peers.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kith-io/kith/bench/peers/rig"
)

// goCommand is the go command that make was given.
func goCommand() string {
	if g := os.Getenv("GO"); g != "" {
		return g
	}
	return "go"
}

// output runs a command and makes its output the error when it fails.
func output(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
}

// need returns the path of a program of the system, or an error that says what to install.
func need(program, install string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed (%s)", program, install)
	}
	return path, nil
}

// commit is what of ours is measured, as git names it; "" where there is no git.
func (r *run) commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "-C", r.dir, "describe", "--always", "--dirty").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// prepare makes the folder that programs are built into.
func (r *run) prepare() error {
	var err error
	if r.dir, err = filepath.Abs(r.Dir); err != nil {
		return err
	}
	r.out = r.Out
	if !filepath.IsAbs(r.out) {
		r.out = filepath.Join(r.dir, "..", "..", r.out)
	}
	return os.MkdirAll(r.out, 0o755)
}

// build makes the programs of the wanted systems. Those of others that fail are named and left out.
func (r *run) build(ctx context.Context) error {
	for _, s := range systems {
		if !r.wantedSystem(s.name) {
			continue
		}
		start, err := s.build(ctx, r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (s.name == ours || s.name == raw):
			return fmt.Errorf("build %s: %w", s.name, err)
		case err != nil:
			r.note("%s has no rows: cannot be built: %v", s.name, err)
			continue
		}
		r.progress.Printf("built %s", s.name)
		r.built = append(r.built, builtSystem{s, start})
	}
	return nil
}

// buildErlang compiles the two modules in erlang/. Its nodes find each other without Erlang's daemon of names, so
// nothing stays behind.
func buildErlang(ctx context.Context, r *run) (starter, error) {
	const install = "Debian and Ubuntu: erlang-base"
	erl, err := need("erl", install)
	if err != nil {
		return starter{}, err
	}
	compiler, err := need("erlc", install)
	if err != nil {
		return starter{}, err
	}
	out := filepath.Join(r.out, "erlang")
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil { // no module of an earlier source
		return starter{}, err
	}
	cmd := exec.CommandContext(ctx, compiler, "-o", out, "kith_peer.erl", "kith_epmd.erl")
	cmd.Dir = filepath.Join(r.dir, "erlang")
	// +zdbbl: a sender is held back when 32 MiB wait for a node; the default of 1 MiB suspends it all the time.
	return starter{path: erl, args: []string{"-noshell", "+zdbbl", "32768", "-start_epmd", "false", "-epmd_module",
		"kith_epmd", "-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-pa", out, "-s", "kith_peer", "start"},
		env: []string{"ERL_CRASH_DUMP_SECONDS=0"}}, output(cmd)
}

// sleeping makes Erlang's schedulers sleep as soon as they have nothing to do. By default they spin for a while before.
func sleeping(build builder) builder {
	return func(ctx context.Context, r *run) (starter, error) {
		s, err := build(ctx, r)
		s.args = append([]string{"+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"}, s.args...)
		return s, err
	}
}

// polling makes our event loops look for more for a while before they sleep.
func polling(build builder) builder {
	return func(ctx context.Context, r *run) (starter, error) {
		s, err := build(ctx, r)
		s.env = append(s.env, "KITH_POLL_FOR=50us")
		return s, err
	}
}

// onNodes has the receiver be so many nodes, each with as many subscribers as one otherwise.
func onNodes(n int, build builder) builder {
	return func(ctx context.Context, r *run) (starter, error) {
		s, err := build(ctx, r)
		s.env = append(s.env, rig.NodesVariable+"="+strconv.Itoa(n))
		return s, err
	}
}

// buildPekko makes both halves of a pair.
func buildPekko(ctx context.Context, r *run) (starter, error) {
	java, classes, err := pekkoClasses(ctx, r)
	// The parallel collector has the most throughput on two cores, and is the same one in all placements.
	return starter{path: java, args: []string{"-Xms512m", "-Xmx512m", "-XX:+UseParallelGC", "-cp", classes,
		"kith.peers.Main"}}, err
}

// pekkoClasses compiles the Maven project in pekko/, copies what it depends on beside it, and returns the path of java
// and the class path.
func pekkoClasses(ctx context.Context, r *run) (java, classes string, err error) {
	const install = "Debian and Ubuntu: openjdk-17-jdk-headless maven"
	if java, err = need("java", install); err != nil {
		return "", "", err
	}
	maven, err := need("mvn", install)
	if err != nil {
		return "", "", err
	}
	out := filepath.Join(r.out, "pekko")
	lib := filepath.Join(out, "lib")
	cmd := exec.CommandContext(ctx, maven, "-q", "-B", "-f", "pekko/pom.xml", "-Dpeers.out="+out, "compile",
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+lib)
	cmd.Dir = r.dir
	return java, filepath.Join(out, "classes") + string(os.PathListSeparator) + filepath.Join(lib, "*"), output(cmd)
}
