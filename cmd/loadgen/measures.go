// The measures of one round of bench.

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// measure is one thing that is measured in every round; it adds its figures to f.
type measure struct {
	name string
	run  func(ctx context.Context, f bench.Figures) error
}

// round runs all measures once, in the same order each time, so that every figure has its baseline within seconds.
func (r *rounds) round(ctx context.Context, title string) (bench.Figures, error) {
	f := bench.Figures{}
	for _, m := range r.measures() {
		if !r.wanted(m.name) {
			continue
		}
		if err := m.run(ctx, f); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", title, m.name, err)
		}
		r.progress.Printf("%s: %s", title, m.name)
	}
	for _, n := range []string{"1", "64"} {
		f.OfBulk("link_of_bulk_"+n, "link_rate_"+n, "bulk_gbps")
	}
	f.Ratio("tls_of_plain", "tls_link_rate_1", "link_rate_1")
	f.Ratio("tls_tell_of_plain", "tls_tell_rate_inline", "tell_rate_inline")
	for exec := range execs {
		f.OfBulk("tell_of_bulk_"+exec, "tell_rate_"+exec, "bulk_gbps")
		f.OfBulk("tell_of_bulk_"+exec+apart, "tell_rate_"+exec+apart, "bulk_gbps"+apart)
	}
	for _, s := range suffixes {
		f.Ratio("ask1_over_raw"+s, "ask1_inline_p50_us"+s, "raw1_p50_us"+s)
		f.Ratio("ask1_worker_over_raw"+s, "ask1_worker_p50_us"+s, "raw1_p50_us"+s)
		f.Ratio("ask1_poll_over_raw"+s, "ask1_poll_p50_us"+s, "raw1_p50_us"+s)
		f.Ratio("ask1_p99_over_raw"+s, "ask1_inline_p99_us"+s, "raw1_p99_us"+s)
		f.Ratio("ask1_beside_large_over_alone"+s, "ask1_beside_large_p50_us"+s, "ask1_beside_none_p50_us"+s)
		f.Ratio("ask1_p99_beside_large_over_alone"+s, "ask1_beside_large_p99_us"+s, "ask1_beside_none_p99_us"+s)
	}
	return f, nil
}

func (r *rounds) measures() []measure {
	all := []measure{
		{"bulk", func(ctx context.Context, f bench.Figures) error { return r.bulk(ctx, f, r.free, "") }},
		{"micro", func(ctx context.Context, f bench.Figures) error { return r.figures(ctx, f, "micro", cli.None{}) }},
		{"route", func(ctx context.Context, f bench.Figures) error {
			return r.figures(ctx, f, "route", execArgs{"inline"})
		}},
		{"link 1", func(ctx context.Context, f bench.Figures) error { return r.link(ctx, f, 1, r.free, "link_rate_1") }},
	}
	if r.secret != nil { // right beside the same without TLS: their ratio counts
		all = append(all, measure{"link 1 tls", func(ctx context.Context, f bench.Figures) error {
			if _, ok := f["link_rate_1"]; !ok {
				if err := r.link(ctx, f, 1, r.free, "link_rate_1"); err != nil {
					return err
				}
			}
			return r.link(ctx, f, 1, r.secret, "tls_link_rate_1")
		}})
	}
	all = append(all, measure{"link 64", func(ctx context.Context, f bench.Figures) error {
		return r.link(ctx, f, 64, r.free, "link_rate_64")
	}})
	for _, exec := range []string{"inline", "worker", "blocking"} {
		all = append(all, measure{"tell " + exec,
			func(ctx context.Context, f bench.Figures) error { return r.tell(ctx, f, r.free, exec, "") }})
		if exec == "inline" && r.secret != nil {
			all = append(all, measure{"tell inline tls", r.tellSecret})
		}
	}
	all = append(all,
		measure{"ask256", func(ctx context.Context, f bench.Figures) error {
			return r.ask256(ctx, f, r.free, bench.Ask, "")
		}},
		measure{"ask256 by callback", func(ctx context.Context, f bench.Figures) error {
			return r.ask256(ctx, f, r.free, bench.AskFunc, "")
		}})
	if c := r.pinned[apart]; c != nil {
		all = append(all, r.measuresApart(c)...)
	}
	for _, s := range suffixes {
		if c := r.pinned[s]; c != nil {
			all = append(all, measure{"ask1" + s, func(ctx context.Context, f bench.Figures) error {
				return r.ask1(ctx, f, c, s)
			}}, measure{"large" + s, func(ctx context.Context, f bench.Figures) error {
				return r.large(ctx, f, c, s)
			}})
		}
	}
	return all
}

// figures lets the sender measure by itself.
func (r *rounds) figures(ctx context.Context, f bench.Figures, op string, args any) error {
	var got bench.Figures
	err := r.free.sender.Call(ctx, op, args, &got)
	f.Merge(got)
	return err
}

// bulk measures the bytes per second of one loopback connection between the two processes of a crew.
func (r *rounds) bulk(ctx context.Context, f bench.Figures, c *crew, suffix string) error {
	var at addrReply
	if err := c.first().Call(ctx, "listen", listenArgs{"bulk"}, &at); err != nil {
		return err
	}
	if err := c.sender.Call(ctx, "bulk", timedArgs{at.Addr, r.unit}, nil); err != nil {
		return err
	}
	var got bulkReply
	if err := c.first().Call(ctx, "bulked", cli.None{}, &got); err != nil {
		return err
	}
	f.Set("bulk_gbps"+suffix, float64(got.Bytes)/got.Took.Seconds()/1e9)
	return nil
}

// link measures frames per second over a bare link, counted where they arrive.
func (r *rounds) link(ctx context.Context, f bench.Figures, producers int, c *crew, name string) error {
	var at linkReply
	var protect fleet.Files
	if c == r.secret {
		protect = r.certs.Of(certName)
	}
	if err := c.first().Call(ctx, "link-listen", linkListenArgs{protect}, &at); err != nil {
		return err
	}
	rate, _, _, err := r.steady(ctx, c, "link-count", cli.None{}, func(ctx context.Context, d time.Duration) error {
		return c.sender.Call(ctx, "link-send", linkArgs{at.Addr, at.Inc, producers, d, protect}, nil)
	})
	f.Set(name, rate)
	return err
}

// tellSecret measures one-way messages per second to inline entities over TLS, and what both ends allocate for one.
func (r *rounds) tellSecret(ctx context.Context, f bench.Figures) error {
	if _, ok := f["tell_rate_inline"]; !ok { // its baseline, left out by --only
		if err := r.tell(ctx, f, r.free, "inline", ""); err != nil {
			return err
		}
	}
	l := bench.Load{Mode: bench.Tell, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 1}
	rate, before, after, err := r.steady(ctx, r.secret, "usage", execArgs{"inline"},
		func(ctx context.Context, d time.Duration) error {
			l.Duration = d
			return r.secret.sender.Call(ctx, "load", loadArgs{Exec: "inline", Load: l}, nil)
		})
	if n := after.count - before.count; err == nil && n > 0 {
		f.Set("tls_tell_rate_inline", rate)
		allocs, _ := after.sender.Per(before.sender, n)
		f.Set("tls_tell_allocs_sender", allocs)
		allocs, _ = after.receivers.Per(before.receivers, n)
		f.Set("tls_tell_allocs_receiver", allocs)
	}
	return err
}

// steady runs a load and measures the middle of it: how many messages per second arrived at the receiver, by its own
// clock, and what both processes used meanwhile.
func (r *rounds) steady(ctx context.Context, c *crew, countOp string, args any,
	load func(context.Context, time.Duration) error) (rate float64, before, after usages, err error) {
	done := make(chan error, 1)
	go func() { done <- load(ctx, r.unit+r.unit/2) }()
	cli.Pause(ctx, r.unit/4)
	if before, err = r.look(ctx, c, countOp, args); err == nil {
		cli.Pause(ctx, r.unit)
		after, err = r.look(ctx, c, countOp, args)
	}
	if failed := <-done; failed != nil {
		err = failed
	}
	if err == nil {
		rate = float64(after.count-before.count) / (after.receivers.At - before.receivers.At).Seconds()
	}
	return rate, before, after, err
}

func (r *rounds) look(ctx context.Context, c *crew, countOp string, args any) (usages, error) {
	var s, got usageReply
	if err := c.sender.Call(ctx, "usage", execArgs{}, &s); err != nil {
		return usages{}, err
	}
	err := c.first().Call(ctx, countOp, args, &got)
	return usages{sender: s.Usage, receivers: got.Usage, count: got.Count, refused: s.Refused}, err
}

// tell measures one-way messages per second to entities of a mode, counted at their handlers.
func (r *rounds) tell(ctx context.Context, f bench.Figures, c *crew, exec, suffix string) error {
	begin, err := c.usage(ctx, exec)
	if err != nil {
		return err
	}
	var sent loadReply
	rate, before, after, err := r.steady(ctx, c, "usage", execArgs{exec},
		func(ctx context.Context, d time.Duration) error {
			l := bench.Load{Mode: bench.Tell, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 1, Duration: d}
			return c.sender.Call(ctx, "load", loadArgs{Exec: exec, Load: l}, &sent)
		})
	if err != nil {
		return err
	}
	if rate > 0 {
		f.Set("tell_rate_"+exec+suffix, rate)
	}
	end, err := c.quiesced(ctx, exec, benchEntities, begin, sent.Sent)
	if err != nil {
		return err
	}
	refused := end.refused - begin.refused
	if got := end.count - begin.count + refused; got < sent.Sent {
		return fmt.Errorf("%w: %d of %d", errLost, sent.Sent-got, sent.Sent)
	}
	if n := after.count - before.count; n > 0 {
		allocs, cpu := after.sender.Per(before.sender, n)
		f.Set("tell_cpu_ns_sender_"+exec+suffix, cpu)
		received, cpu := after.receivers.Per(before.receivers, n)
		f.Set("tell_cpu_ns_receiver_"+exec+suffix, cpu)
		switch exec {
		case "worker": // the two names of the table are those of worker entities
			f.Set("tell_allocs_sender"+suffix, allocs)
			f.Set("tell_allocs_receiver"+suffix, received)
		case "blocking":
			f.Set("tell_refused_blocking", float64(refused)/float64(sent.Sent))
			f.Set("tell_allocs_receiver_blocking", received)
		default:
			f.Set("tell_allocs_receiver_"+exec+suffix, received)
		}
	}
	return nil
}

// ask256 measures asks per second to inline entities with 256 under way.
func (r *rounds) ask256(ctx context.Context, f bench.Figures, c *crew, mode bench.Mode, suffix string) error {
	name, allocs := "ask256_rate", "ask_allocs"
	l := bench.Load{Mode: mode, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 16, Inflight: 16,
		Timeout: 5 * time.Second}
	if mode == bench.AskFunc {
		l.Senders, l.Inflight = 1, 256
		name, allocs = "ask256_cb_rate", "ask_cb_allocs"
	}
	var reply loadReply
	rate, before, after, err := r.steady(ctx, c, "usage", execArgs{"inline"},
		func(ctx context.Context, d time.Duration) error {
			l.Duration = d
			return c.sender.Call(ctx, "load", loadArgs{Exec: "inline", Load: l}, &reply)
		})
	if err != nil {
		return err
	}
	if reply.Failed > 0 {
		return fmt.Errorf("%d of %d asks failed: %s", reply.Failed, reply.Failed+reply.Sent, reply.FirstErr)
	}
	f.Set(name+suffix, rate)
	if n := after.count - before.count; n > 0 {
		a, _ := after.sender.Per(before.sender, n)
		f.Set(allocs+suffix, a)
	}
	return nil
}

// ask1 measures one ask at a time between pinned processes, with raw TCP ping-pong of the same bytes between the very
// same processes just before.
func (r *rounds) ask1(ctx context.Context, f bench.Figures, c *crew, suffix string) error {
	var at addrReply
	if err := c.first().Call(ctx, "listen", listenArgs{"pong"}, &at); err != nil {
		return err
	}
	var raw []byte
	if err := c.sender.Call(ctx, "ping", timedArgs{at.Addr, r.unit}, &raw); err != nil {
		return err
	}
	l, err := bench.DecodeLatency(raw)
	if err != nil {
		return err
	}
	l.Figures(f, "raw1", suffix)
	for _, m := range []struct {
		name, exec string
		c          *crew
	}{{"inline", "inline", c}, {"worker", "worker", c}, {"poll", "inline", r.polls[suffix]}} {
		load := bench.Load{Mode: bench.Ask, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 1, Inflight: 1,
			Duration: r.unit, Timeout: 5 * time.Second}
		var got loadReply
		if err := m.c.sender.Call(ctx, "load", loadArgs{Exec: m.exec, Load: load}, &got); err != nil {
			return err
		}
		if got.Failed > 0 {
			return fmt.Errorf("%d asks failed: %s", got.Failed, got.FirstErr)
		}
		if l, err = bench.DecodeLatency(got.Latency); err != nil {
			return err
		}
		l.Figures(f, "ask1_"+m.name, suffix)
	}
	return nil
}

// large measures one ask at a time to inline entities, alone and beside a stream of messages of 64 MiB to worker
// entities of the same two processes.
func (r *rounds) large(ctx context.Context, f bench.Figures, c *crew, suffix string) error {
	for _, m := range []struct{ name, beside string }{{"ask1_beside_none", ""}, {"ask1_beside_large", "worker"}} {
		load := bench.Load{Mode: bench.Ask, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 1, Inflight: 1,
			Duration: 2 * r.unit, Timeout: 5 * time.Second}
		var got loadReply
		if err := c.sender.Call(ctx, "load", loadArgs{Exec: "inline", Load: load, Beside: m.beside}, &got); err != nil {
			return err
		}
		if got.Failed > 0 {
			return fmt.Errorf("%d asks failed: %s", got.Failed, got.FirstErr)
		}
		l, err := bench.DecodeLatency(got.Latency)
		if err != nil {
			return err
		}
		l.Figures(f, m.name, suffix)
		if m.beside != "" {
			f.Set("large_gbps"+suffix, float64(got.Large.Bytes)/got.Large.Took.Seconds()/1e9)
		}
	}
	return nil
}

// stalled stops the receiving process for a while in which four senders keep sending, and measures by how much that
// grows the sender's heap. It has a crew of its own: the stopped node is unreachable to the others meanwhile.
func (r *rounds) stalled(ctx context.Context, e *env.Env, f bench.Figures) error {
	c, err := startCrew(ctx, e, crewArgs{name: "stalled-", receivers: 1, shards: benchShards})
	if err != nil {
		return err
	}
	defer c.kill()
	if err := c.flush(ctx, "worker", benchEntities); err != nil {
		return err
	}
	var before, after uint64
	if err := c.sender.Call(ctx, "heap", cli.None{}, &before); err != nil {
		return err
	}
	if err := c.first().Process().Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	l := bench.Load{Mode: bench.Tell, Size: bench.PayloadBytes, Entities: benchEntities, Senders: 4, Duration: 2 * r.unit}
	var sent loadReply
	if err := c.sender.Call(ctx, "load", loadArgs{Exec: "worker", Load: l}, &sent); err != nil {
		return err
	}
	if err := c.sender.Call(ctx, "heap", cli.None{}, &after); err != nil {
		return err
	}
	f.Set("stalled_mb", max(0, float64(after)-float64(before))/1e6)
	f.Set("stalled_accepted_mb", float64(sent.Sent)*bench.FrameBytes/1e6)
	r.progress.Printf("stalled")
	return nil
}
