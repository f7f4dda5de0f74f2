// The systems that are measured and the works they are given.

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/kith-io/kith/bench/peers/rig"
)

// The systems that every run measures.
const (
	ours = "kith"
	raw  = "raw"
)

// system is one thing to measure: its program, and what of it becomes rows.
type system struct {
	name string
	// build makes the program and returns how both halves of a pair are started.
	build builder
	rows  []rowOf
	// warm is how long each of its works runs before anything counts; nothing shorter warms a JVM.
	warm time.Duration
}

// rowOf is one peer of the table: a system, or one variant of it.
type rowOf struct {
	peer, variant string
	works         []string
}

// work is one thing that peers are asked to do.
type work struct {
	name           string
	load           string // of rig
	size, inflight int
	place          string // "" where the kernel puts them, "p1" both on one core, "p2" one core each
	latency        bool   // the figure is the median latency, not the rate
}

var works = []work{
	{name: "bulk", load: rig.Tell, size: 1 << 20},
	{name: "tell_64", load: rig.Tell, size: 64},
	{name: "tell_1k", load: rig.Tell, size: 1024},
	{name: "pool_64", load: rig.Tell, size: 64},      // to any worker; our entities beside them are those of tell_64
	{name: "publish_200", load: rig.Tell, size: 64},  // to 200 subscribers; the rate is that of messages all of them got
	{name: "publish_1000", load: rig.Tell, size: 64}, // to 1,000 on five nodes, or on as many connections of a broker
	{name: "ask_1_p1", load: rig.Ask, size: 64, inflight: 1, place: "p1", latency: true},
	{name: "ask_1_p2", load: rig.Ask, size: 64, inflight: 1, place: "p2", latency: true},
	{name: "ask_256", load: rig.Ask, size: 64, inflight: 256},
	{name: "call_256", load: rig.Call, size: 64, inflight: 256},
	{name: "pool_ask_256", load: rig.Ask, size: 64, inflight: 256},
}

// The works that have no pair of processes: they run in the codecs' program.
const (
	encode = "encode"
	decode = "decode"
)

func workNames() []string {
	var names []string
	for _, w := range works {
		names = append(names, w.name)
	}
	return append(names, encode, decode)
}

var (
	tells = []string{"tell_64", "tell_1k"}
	asks  = []string{"ask_1_p1", "ask_1_p2", "ask_256"}
	both  = slices.Concat(tells, asks)
	pools = []string{"pool_64", "pool_ask_256"}
)

// systems in the order in which a round measures them.
var systems = []system{
	{name: raw, build: goProgram(raw), rows: []rowOf{
		{peer: "raw", variant: "bulk", works: []string{"bulk"}},
		{peer: "raw", works: []string{"tell_64", "tell_1k", "ask_1_p1", "ask_1_p2"}}}},
	{name: ours, build: goProgram(ours), rows: []rowOf{
		{peer: "kith-inline", variant: "inline", works: slices.Concat([]string{"call_256"}, both, pools)},
		{peer: "kith-worker", variant: "worker", works: slices.Concat([]string{"call_256"}, both, pools)},
		{peer: "kith-blocking", variant: "blocking", works: slices.Concat(both, pools)}}},
	{name: "kith-poll", build: polling(goProgram(ours)), rows: []rowOf{
		{peer: "kith-poll", variant: "inline", works: []string{"ask_1_p2"}}}},
	{name: "kith-topics", build: goProgram("kithtopics"), rows: []rowOf{
		{peer: "kith-topics", works: []string{"publish_200"}}}},
	{name: "nats-topics", build: goProgram("natstopics"), rows: []rowOf{
		{peer: "nats-topics", works: []string{"publish_200"}}}},
	{name: "kith-topics-5", build: onNodes(5, goProgram("kithtopics")), rows: []rowOf{
		{peer: "kith-topics-5", works: []string{"publish_1000"}}}},
	{name: "nats-topics-5", build: onNodes(5, goProgram("natstopics")), rows: []rowOf{
		{peer: "nats-topics-5", works: []string{"publish_1000"}}}},
	{name: "kith-pool", build: goProgram("kithpool"), rows: []rowOf{
		{peer: "kith-pool-worker", variant: "worker", works: pools},
		{peer: "kith-pool-blocking", variant: "blocking", works: pools}}},
	{name: "goakt", build: goProgram("goakt"), rows: []rowOf{
		{peer: "goakt", variant: "actors", works: both},
		{peer: "goakt-router", variant: "router", works: []string{"pool_64"}}}},
	{name: "nats", build: goProgram("nats"), rows: []rowOf{{peer: "nats", works: both},
		{peer: "nats-queue", variant: "queue", works: pools}}},
	{name: "grpc", build: goProgram("grpc"), rows: []rowOf{
		{peer: "grpc-stream", variant: "stream", works: both},
		{peer: "grpc-unary", variant: "unary", works: asks}}},
	{name: "hollywood", build: goProgram("hollywood"), rows: []rowOf{{peer: "hollywood", works: both}}},
	{name: "protoactor", build: goProgram("protoactor"), rows: []rowOf{{peer: "protoactor", works: both}}},
	{name: "erlang", build: buildErlang, rows: []rowOf{{peer: "erlang", works: both}}},
	{name: "erlang-sleep", build: sleeping(buildErlang), rows: []rowOf{
		{peer: "erlang-sleep", works: []string{"ask_1_p1", "ask_1_p2"}}}},
	{name: "pekko", build: buildPekko, warm: 3 * time.Second, rows: []rowOf{
		{peer: "pekko-remote", variant: "remote", works: both},
		{peer: "pekko-sharded", variant: "sharded", works: both}}},
}

// codecs is the name under which the codecs' program is picked.
const codecs = "codec"

func systemNames() []string {
	var names []string
	for _, s := range systems {
		if s.name != ours && s.name != raw {
			names = append(names, s.name)
		}
	}
	return append(names, codecs)
}

// starter says how a process of a pair is started: a program, its arguments and what is added to its environment.
type starter struct {
	path string
	args []string
	env  []string
	// stop ends what build left running; nil when there is nothing.
	stop func()
}

// builder makes a program and says how it is started.
type builder func(ctx context.Context, r *run) (starter, error)

// goProgram builds one of the programs of this module.
func goProgram(name string) builder {
	return func(ctx context.Context, r *run) (starter, error) {
		path := filepath.Join(r.out, name)
		cmd := exec.CommandContext(ctx, goCommand(), "build", "-o", path, "./programs/"+name)
		cmd.Dir = r.dir
		return starter{path: path}, output(cmd)
	}
}
