// loadgen run: one workload between a sender and one or more receivers.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// runCmd is the flags of loadgen run.
type runCmd struct {
	Mode     string        `enum:"tell,ask" default:"tell" help:"What is sent: tell, or ask and wait for the answer."`
	Exec     string        `enum:"inline,worker,blocking" default:"worker" help:"${exec_help}"`
	Inline   bool          `help:"Short for --exec=inline."`
	Callback bool          `help:"With --mode=ask: answers call a function instead of waking a goroutine."`
	Size     int           `default:"64" help:"${size_help}"`
	Entities int           `default:"1000" help:"Entities that are sent to in turn, 1 to 10000000."`
	Shards   uint32        `default:"100" help:"${shards_help}"`
	Senders  int           `default:"4" help:"Goroutines that send, 1 to 1024."`
	Inflight int           `default:"16" help:"${inflight_help}"`
	Rate     float64       `default:"0" help:"${rate_help}"`
	Duration time.Duration `default:"10s" help:"${duration_help}"`
	Target   []string      `placeholder:"HOST:PORT" help:"${target_help}"`
	Cluster  string        `default:"loadgen" help:"${cluster_help}"`
	Listen   string        `placeholder:"HOST:PORT" help:"With --target: the sender's address; empty: a loopback port."`
	protectFlags
	Nodes    int           `default:"2" help:"Processes, one of which sends; 2 to 64."`
	PollFor  time.Duration `default:"0s" help:"${poll_help}"`
	Timeout  time.Duration `default:"5s" help:"${timeout_help}"`
	TLS      bool          `name:"tls" help:"${tls_help}"`
	JSON     bool          `name:"json" help:"Print nothing but the last line."`
	Profile  string        `type:"path" placeholder:"DIR" help:"Write profiles and traces of the first two nodes to DIR."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
}

// warm is how long the load runs before anything counts.
func (c *runCmd) warm() time.Duration { return min(time.Second, c.Duration/4) }

// Validate is called by the parser, which knows what was given: a flag with its default may stand beside any other.
func (c *runCmd) Validate(parsed *kong.Context) error {
	errs := c.contradictions(given(parsed))
	errs.Must(c.Size >= bench.MinStamped && c.Size <= 1<<20, "--size must be 16 to 1048576")
	errs.Must(c.Entities >= 1 && c.Entities <= 10_000_000, "--entities must be 1 to 10000000")
	errs.Must(c.Shards >= 1 && c.Shards <= 1<<20, "--shards must be 1 to 1048576")
	errs.Must(c.Senders >= 1 && c.Senders <= 1024, "--senders must be 1 to 1024")
	errs.Must(c.Inflight >= 1 && c.Inflight <= 4096, "--inflight must be 1 to 4096")
	errs.Must(c.Mode != "ask" || c.Senders*c.Inflight <= 65536, "--senders times --inflight must be at most 65536")
	errs.Must(c.Rate >= 0, "--rate is negative")
	errs.Must(c.Duration >= 100*time.Millisecond, "--duration must be at least 100ms")
	errs.Must(c.Nodes >= 2 && c.Nodes <= 64, "--nodes must be 2 to 64")
	errs.Must(c.PollFor >= 0 && c.PollFor <= time.Millisecond, "--poll-for must be 0 to 1ms")
	errs.Must(c.Timeout > 0, "--timeout must be more than zero")
	errs.Must(len(c.Target) > 0 || c.Listen == "" && c.protectFlags == protectFlags{} && c.Cluster == clusterName,
		"--cluster, --listen, --insecure, --tls-cert, --tls-key and --tls-ca need --target")
	for _, a := range c.Target {
		if _, err := kith.ParseAddr(a); err != nil {
			errs = append(errs, fmt.Errorf("--target=%s: %w", a, err))
		}
	}
	errs.Must(len(c.Target) == 0 || !c.TLS,
		"--tls makes certificates that running nodes do not know: give --tls-cert, --tls-key, --tls-ca")
	return errs.Err()
}

// receivers is how many processes are spawned beside the sender.
func (c *runCmd) receivers() int {
	if len(c.Target) > 0 {
		return 0
	}
	return c.Nodes - 1
}

func (c *runCmd) exec() string {
	if c.Inline {
		return "inline"
	}
	return c.Exec
}

func (c *runCmd) load(d time.Duration) bench.Load {
	l := bench.Load{Mode: bench.Tell, Size: c.Size, Entities: c.Entities, Senders: c.Senders, Inflight: c.Inflight,
		Rate: c.Rate, Duration: d, Timeout: c.Timeout}
	switch {
	case c.Mode == "tell":
		l.Stamp = c.Rate > 0
	case c.Callback:
		l.Mode = bench.AskFunc
	default:
		l.Mode = bench.Ask
	}
	return l
}

// loadLine is the last line of loadgen run. Latencies are those of answered asks, or of stamped tells up to their
// handler; they are absent for tells without --rate.
type loadLine struct {
	Mode            string   `json:"mode"`
	Exec            string   `json:"exec"`
	TLS             bool     `json:"tls"`
	Nodes           int      `json:"nodes"`
	Size            int      `json:"size"`
	Entities        int      `json:"entities"`
	Senders         int      `json:"senders"`
	Inflight        int      `json:"inflight,omitempty"`
	RateWanted      float64  `json:"rate_wanted,omitempty"`
	Seconds         float64  `json:"seconds"`
	Sent            uint64   `json:"sent"`
	Delivered       uint64   `json:"delivered"` // counted at the handlers
	Refused         uint64   `json:"refused"`
	Lost            uint64   `json:"lost"`
	Failed          uint64   `json:"failed"` // not accepted, or asked and not answered
	FirstErr        string   `json:"first_error,omitempty"`
	Rate            float64  `json:"rate"` // delivered per second
	MegabytesPerSec float64  `json:"payload_mb_s"`
	P50             float64  `json:"p50_us,omitempty"`
	P90             float64  `json:"p90_us,omitempty"`
	P99             float64  `json:"p99_us,omitempty"`
	P999            float64  `json:"p999_us,omitempty"`
	Max             float64  `json:"max_us,omitempty"`
	Late50          float64  `json:"late_p50_us,omitempty"` // of the sender's own waking up for its schedule
	Late99          float64  `json:"late_p99_us,omitempty"`
	AllocsSender    float64  `json:"allocs_sender"`             // per message
	AllocsReceiver  *float64 `json:"allocs_receiver,omitempty"` // absent when the receivers are running nodes
	CPUSender       float64  `json:"cpu_ns_sender"`             // per message
	CPUReceiver     *float64 `json:"cpu_ns_receiver,omitempty"`
}

var errLost = errors.New("messages were neither delivered nor refused")

// Run forms the cluster, warms up, measures, and reports.
func (c *runCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends this process, and with it its children
	progress := cli.NewProgress(e.Stderr, c.Progress)
	protect := c.files()
	if c.TLS {
		certs, err := newCerts()
		if err != nil {
			return err
		}
		defer certs.Remove()
		protect = certs.Of(certName)
	}
	args := crewArgs{receivers: c.receivers(), shards: c.Shards, tls: protect, cluster: c.Cluster, targets: c.Target,
		listen: c.Listen, insecure: c.Insecure, poll: c.PollFor}
	if len(c.Target) > 0 {
		args.limit = findLimit
	}
	crew, err := startCrew(ctx, e, args)
	if err != nil {
		return err
	}
	defer crew.end()
	progress.Printf("%d processes up", c.receivers()+1)
	if err := crew.flush(ctx, c.exec(), c.Entities); err != nil {
		return err
	}
	progress.Printf("%d entities found", c.Entities)
	line, err := c.measure(ctx, crew, progress)
	if err != nil {
		return err
	}
	if err := crew.leave(context.Background()); err != nil {
		return err
	}
	if !c.JSON {
		line.print(e.Stdout)
	}
	if err := cli.Line(e.Stdout, "load", line); err != nil {
		return err
	}
	if line.Lost > 0 {
		return fmt.Errorf("%w: %d of %d", errLost, line.Lost, line.Sent)
	}
	if line.Delivered == 0 {
		return errors.New("nothing was delivered")
	}
	return nil
}

// looks are what the processes had used before a load, right at its end, and when all that it sent was settled.
type looks struct{ before, ended, quiesced usages }

// measure warms up, then runs the load that counts.
func (c *runCmd) measure(ctx context.Context, crew *crew, progress *cli.Progress) (*loadLine, error) {
	exec := c.exec()
	var warm loadReply
	if err := crew.sender.Call(ctx, "load", loadArgs{Exec: exec, Load: c.load(c.warm())}, &warm); err != nil {
		return nil, err
	}
	if _, err := crew.quiesced(ctx, exec, c.Entities, usages{}, warm.Sent); err != nil {
		return nil, err
	}
	for _, r := range crew.receivers { // ages of the warm-up do not count
		if err := r.Call(ctx, "ages", execArgs{exec}, nil); err != nil {
			return nil, err
		}
	}
	progress.Printf("warm")
	if err := c.profile(ctx, crew, "profile"); err != nil {
		return nil, err
	}
	var at looks
	var err error
	if at.before, err = crew.usage(ctx, exec); err != nil {
		return nil, err
	}
	r, err := c.watch(ctx, crew, progress, at.before)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	if at.ended, err = crew.usage(ctx, exec); err != nil { // to settle asks every entity, which is not the load's
		return nil, err
	}
	if at.quiesced, err = crew.quiesced(ctx, exec, c.Entities, at.before, r.Sent); err != nil {
		return nil, err
	}
	if err := c.profile(ctx, crew, "profiled"); err != nil {
		return nil, err
	}
	return c.line(ctx, crew, r, at)
}

func (c *runCmd) profile(ctx context.Context, crew *crew, op string) error {
	if c.Profile == "" {
		return nil
	}
	profiled := map[string]*cli.Child{"sender": crew.sender}
	if !crew.targets() {
		profiled["receiver"] = crew.first()
	}
	for name, p := range profiled {
		var args any = cli.None{}
		if op == "profile" {
			args = profileArgs{c.Profile, name}
		}
		if err := p.Call(ctx, op, args, nil); err != nil {
			return err
		}
	}
	return nil
}

// watch runs the load and shows what reaches the handlers each second. A signal ends the load early, and what it did
// until then is reported.
func (c *runCmd) watch(sig context.Context, crew *crew, progress *cli.Progress, before usages) (loadReply, error) {
	var r loadReply
	ctx := context.WithoutCancel(sig)
	done := make(chan error, 1)
	go func() { done <- crew.sender.Call(ctx, "load", loadArgs{Exec: c.exec(), Load: c.load(c.Duration)}, &r) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := before; ; {
		select {
		case err := <-done:
			return r, err
		case <-sig.Done():
			if err := crew.sender.Call(ctx, "stop", cli.None{}, nil); err != nil {
				return r, err
			}
			return r, <-done
		case <-tick.C:
		}
		if !progress.On() || crew.targets() {
			continue // the look at the counters stops the world of the processes for a moment
		}
		u, err := crew.usage(ctx, c.exec())
		if err != nil {
			return r, err
		}
		took := (u.receivers.At - last.receivers.At).Seconds()
		progress.Printf("%10.0f /s delivered", float64(u.count-last.count)/took)
		last = u
	}
}

func (c *runCmd) line(ctx context.Context, crew *crew, r loadReply, at looks) (*loadLine, error) {
	l := &loadLine{Mode: c.Mode, Exec: c.exec(), TLS: c.TLS, Nodes: c.receivers() + 1, Size: c.Size, Entities: c.Entities,
		Senders:    c.Senders,
		RateWanted: c.Rate, Seconds: r.Took.Seconds(), Sent: r.Sent, Failed: r.Failed,
		Delivered: at.quiesced.count - at.before.count, Refused: at.quiesced.refused - at.before.refused}
	if c.Mode == "ask" {
		l.Inflight = c.Inflight
	}
	if got := l.Delivered + l.Refused; got < l.Sent {
		l.Lost = l.Sent - got
	}
	l.FirstErr = r.FirstErr
	l.Rate = float64(l.Delivered) / r.Took.Seconds()
	l.MegabytesPerSec = l.Rate * float64(c.Size) / 1e6
	l.AllocsSender, l.CPUSender = at.ended.sender.Per(at.before.sender, max(r.Sent, 1))
	if !crew.targets() {
		allocs, cpu := at.ended.receivers.Per(at.before.receivers, max(at.ended.count-at.before.count, 1))
		l.AllocsReceiver, l.CPUReceiver = &allocs, &cpu
	}
	if len(r.Late) > 0 {
		late, err := bench.DecodeLatency(r.Late)
		if err != nil {
			return l, err
		}
		l.Late50, l.Late99 = bench.Micros(late.Quantile(50)), bench.Micros(late.Quantile(99))
	}
	latency, err := c.latency(ctx, crew, r)
	if err != nil || latency.Count() == 0 {
		return l, err
	}
	l.P50, l.P90 = bench.Micros(latency.Quantile(50)), bench.Micros(latency.Quantile(90))
	l.P99, l.P999 = bench.Micros(latency.Quantile(99)), bench.Micros(latency.Quantile(99.9))
	l.Max = bench.Micros(latency.Max())
	return l, nil
}

// latency is that of the asks, or the ages of stamped tells at all receivers.
func (c *runCmd) latency(ctx context.Context, crew *crew, r loadReply) (*bench.Latency, error) {
	if len(r.Latency) > 0 {
		return bench.DecodeLatency(r.Latency)
	}
	sum := bench.NewLatency()
	for _, p := range crew.receivers {
		var b []byte
		if err := p.Call(ctx, "ages", execArgs{c.exec()}, &b); err != nil {
			return nil, err
		}
		l, err := bench.DecodeLatency(b)
		if err != nil {
			return nil, err
		}
		sum.Merge(l)
	}
	return sum, nil
}

// print writes the line for people.
func (l *loadLine) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s, %s entities\t%.1f s\n", l.Mode, l.Exec, l.Seconds)
	fmt.Fprintf(t, "sent\t%d\ndelivered\t%d\nrefused\t%d\nlost\t%d\nfailed\t%d\n", l.Sent, l.Delivered, l.Refused, l.Lost,
		l.Failed)
	if l.FirstErr != "" {
		fmt.Fprintf(t, "first error\t%s\n", l.FirstErr)
	}
	fmt.Fprintf(t, "rate\t%.0f /s, %.1f MB/s of payload\n", l.Rate, l.MegabytesPerSec)
	if l.P50 > 0 {
		fmt.Fprintf(t, "latency us\tp50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f\n", l.P50, l.P90, l.P99, l.P999, l.Max)
		if l.RateWanted > 0 {
			fmt.Fprintf(t, "of which sender's lateness us\tp50 %.1f  p99 %.1f\n", l.Late50, l.Late99)
		}
	}
	fmt.Fprintf(t, "allocations\t%.3f sender%s, per message\n", l.AllocsSender,
		atReceiver(", %.3f receiver", l.AllocsReceiver))
	fmt.Fprintf(t, "CPU ns\t%.0f sender%s, per message\n", l.CPUSender, atReceiver(", %.0f receiver", l.CPUReceiver))
	_ = t.Flush()
}

// atReceiver prints what was measured at a receiver, or nothing.
func atReceiver(format string, v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, *v)
}
