// Command codec encodes and decodes one small message with our codec, with vtprotobuf and with the protobuf runtime, in
// one process and without a socket: 64 bytes of payload, an id of sixteen, and the numbers of an envelope.
package main

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/pb"
	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/internal/cli"
)

// timed is one codec in one direction.
type timed struct {
	Peer, Work string
	Nanos      float64
	Allocs     float64
	Version    string
}

func main() {
	if err := cli.Serve(os.Stdin, os.Stdout, cli.Ops{"codec": cli.Op(measure)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure times every codec, encoding first.
func measure(context.Context, cli.None) ([]timed, error) {
	before := bench.Now()
	f := bench.Codec()
	const atLeast = 1e6 // messages that the figures above are taken over: what little is allocated around them vanishes
	ours, _ := bench.Now().Per(before, atLeast)
	all := []timed{{"kith", "encode", f["encode_ns"], ours, ""}, {"kith", "decode", f["parse_ns"], ours, ""},
		{"kith-framed", "decode", f["decode_ns"], ours, ""}}
	more, err := protobufs()
	return append(all, more...), err
}

// message is what our envelope holds.
func message(i int) *pb.Envelope {
	return &pb.Envelope{Type: 1, Shard: 2, Term: 3, Epoch: 4, Id: bench.ID(i), Payload: make([]byte, bench.PayloadBytes)}
}

// batch is how many different messages are gone through in turn, as a batch of a link has them.
const batch = 64

// protobufs times the generated code and the reflective runtime. Both encode into a buffer that is there already.
// Vtprotobuf decodes into a message that is there already, with views into the input as ours has them.
func protobufs() ([]timed, error) {
	var messages [batch]*pb.Envelope
	var encoded [batch][]byte
	var failed error
	for i := range messages {
		messages[i] = message(i)
		if encoded[i], failed = messages[i].MarshalVT(); failed != nil {
			return nil, failed
		}
	}
	buf := make([]byte, 0, 4*len(encoded[0]))
	keep := func(err error) {
		if err != nil {
			failed = err
		}
	}
	var out []timed
	run := func(peer, work, module string, f func(i int)) {
		var calls uint64
		before := bench.Now()
		nanos := bench.PerCall(func(n int) {
			calls += uint64(n)
			for i := range n {
				f(i % batch)
			}
		})
		allocs, _ := bench.Now().Per(before, calls)
		out = append(out, timed{peer, work, nanos, allocs, rig.Version(module)})
	}
	const vt, standard = "github.com/planetscale/vtprotobuf", "google.golang.org/protobuf"
	run("vtprotobuf", "encode", vt, func(i int) {
		m := messages[i]
		_, err := m.MarshalToSizedBufferVT(buf[:m.SizeVT()])
		keep(err)
	})
	var into pb.Envelope
	run("vtprotobuf", "decode", vt, func(i int) {
		into = pb.Envelope{}
		keep(into.UnmarshalVTUnsafe(encoded[i]))
	})
	run("protobuf-go", "encode", standard, func(i int) {
		_, err := proto.MarshalOptions{}.MarshalAppend(buf[:0], messages[i])
		keep(err)
	})
	run("protobuf-go", "decode", standard, func(i int) { keep(proto.Unmarshal(encoded[i], &into)) })
	return out, failed
}
