// The worker's baselines: raw TCP and bare links.

package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// listenArgs says what is done with the one connection that is accepted: "bulk" reads it to its end, "pong" answers.
type listenArgs struct{ Serve string }

// bulkReply is what a bulk connection brought.
type bulkReply struct {
	Bytes int64
	Took  time.Duration
	Err   string
}

func (w *worker) listen(_ context.Context, a listenArgs) (addrReply, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return addrReply{}, err
	}
	got := make(chan bulkReply, 1)
	w.mu.Lock()
	w.received = got
	w.mu.Unlock()
	go func() {
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			got <- bulkReply{Err: err.Error()}
			return
		}
		if a.Serve == "pong" {
			_ = bench.Pong(c) // the other side sees what went wrong
			return
		}
		var r bulkReply
		if r.Bytes, r.Took, err = bench.BulkReceive(c); err != nil {
			r.Err = err.Error()
		}
		got <- r
	}()
	return addrReply{l.Addr().String()}, nil
}

type timedArgs struct {
	Addr     string
	Duration time.Duration
}

func (w *worker) bulk(ctx context.Context, a timedArgs) (cli.None, error) {
	c, err := dialLoopback(ctx, a.Addr)
	if err != nil {
		return cli.None{}, err
	}
	return cli.None{}, bench.BulkSend(c, a.Duration)
}

// bulked waits for the end of the bulk connection that listen accepted.
func (w *worker) bulked(ctx context.Context, _ cli.None) (bulkReply, error) {
	w.mu.Lock()
	got := w.received
	w.mu.Unlock()
	if got == nil {
		return bulkReply{}, errors.New("nobody listens")
	}
	select {
	case r := <-got:
		if r.Err != "" {
			return r, errors.New(r.Err)
		}
		return r, nil
	case <-ctx.Done():
		return bulkReply{}, ctx.Err()
	}
}

func (w *worker) ping(ctx context.Context, a timedArgs) ([]byte, error) {
	c, err := dialLoopback(ctx, a.Addr)
	if err != nil {
		return nil, err
	}
	l, err := bench.Ping(c, a.Duration)
	if err != nil {
		return nil, err
	}
	return l.Encode()
}

// linkReply tells where a link's receiving end is.
type linkReply struct {
	Addr string
	Inc  uint64
}

type linkListenArgs struct{ TLS fleet.Files }

// linkListen opens the receiving end of a bare link.
func (w *worker) linkListen(_ context.Context, a linkListenArgs) (linkReply, error) {
	s, err := bench.NewLinkSink(a.TLS.TLS())
	if err != nil {
		return linkReply{}, err
	}
	w.mu.Lock()
	was := w.links
	w.links = s
	w.mu.Unlock()
	if was != nil {
		_ = was.Close()
	}
	addr, inc := s.Addr()
	return linkReply{addr, inc}, nil
}

type linkArgs struct {
	Addr      string
	Inc       uint64
	Producers int
	Duration  time.Duration
	TLS       fleet.Files
}

// sentReply is how many frames a link accepted.
type sentReply struct{ Sent uint64 }

func (w *worker) linkSend(ctx context.Context, a linkArgs) (sentReply, error) {
	n, err := bench.SendLink(ctx, a.Addr, a.Inc, a.Producers, a.Duration, a.TLS.TLS())
	return sentReply{n}, err
}

// linkCount returns how many frames have come over the bare link.
func (w *worker) linkCount(context.Context, cli.None) (usageReply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.links == nil {
		return usageReply{}, errors.New("nobody listens")
	}
	return usageReply{Usage: bench.Now(), Count: w.links.Count()}, nil
}
