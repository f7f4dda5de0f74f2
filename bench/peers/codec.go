// Codecs: encoding and decoding one small message, in one process, one codec after the other.

package main

import (
	"context"
	"fmt"

	"github.com/kith-io/kith/internal/cli"
)

// timed is what the codecs' program answers for one codec and direction.
type timed struct {
	Peer, Work string
	Nanos      float64
	Allocs     float64
	Version    string
}

// buildCodec builds and starts the codecs' program when it is wanted.
func (r *run) buildCodec(ctx context.Context) error {
	if !r.wantedSystem(codecs) || !r.wantedWork(encode) && !r.wantedWork(decode) {
		return nil
	}
	start, err := goProgram(codecs)(ctx, r)
	if err != nil {
		return fmt.Errorf("build %s: %w", codecs, err)
	}
	r.codec, err = cli.Start(cli.Options{Name: codecs, Path: start.path})
	return err
}

// codecs adds what the codecs' program measures to a round.
func (r *run) codecs(ctx context.Context, title string, out round) error {
	if r.codec == nil {
		return nil
	}
	var all []timed
	if err := r.codec.Call(ctx, codecs, cli.None{}, &all); err != nil {
		return err
	}
	for _, t := range all {
		if r.wantedWork(t.Work) {
			out[rowWork{t.Peer, t.Work}] = measured{nanos: t.Nanos, allocs: t.Allocs, version: t.Version}
			r.progress.Printf("%s: %-9s %-14s %8.1f ns", title, t.Work, t.Peer, t.Nanos)
		}
	}
	return nil
}
