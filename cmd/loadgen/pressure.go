// loadgen pressure: one slow Blocking entity among many behind TellWait from several nodes, and what the others keep.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// pressureCmd is the flags of loadgen pressure.
type pressureCmd struct {
	Entities int           `default:"1000" help:"Blocking entities, one of which is slow, 2 to 100000."`
	Senders  int           `default:"4" help:"Processes with a node each that send, 1 to 16."`
	Tellers  int           `default:"2" help:"${tellers_help}"`
	Slow     time.Duration `default:"5ms" help:"${press_help}"`
	Mailbox  int           `default:"65536" help:"Bytes of each mailbox, 1024 to 16777216."`
	Size     int           `default:"64" help:"Bytes of payload, 0 to 65536."`
	Shards   uint32        `default:"100" help:"Shards that they are spread over, 1 to 1048576."`
	Rounds   int           `default:"3" help:"Pairs of turns, without and with the slow entity, 1 to 100."`
	Duration time.Duration `default:"5s" help:"How long each turn is measured, at least 100ms."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *pressureCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Entities >= 2 && c.Entities <= 100_000, "--entities must be 2 to 100000")
	errs.Must(c.Senders >= 1 && c.Senders <= 16, "--senders must be 1 to 16")
	errs.Must(c.Tellers >= 1 && c.Tellers <= 64, "--tellers must be 1 to 64")
	errs.Must(c.Slow >= time.Microsecond && c.Slow <= time.Second, "--slow must be 1us to 1s")
	errs.Must(c.Mailbox >= 1<<10 && c.Mailbox <= 16<<20, "--mailbox must be 1024 to 16777216")
	errs.Must(c.Size >= 0 && c.Size <= 64<<10, "--size must be 0 to 65536")
	errs.Must(c.Shards >= 1 && c.Shards <= 1<<20, "--shards must be 1 to 1048576")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 100, "--rounds must be 1 to 100")
	errs.Must(c.Duration >= 100*time.Millisecond, "--duration must be at least 100ms")
	return errs.Err()
}

// warm is how long a turn runs before it is measured, and after.
func (c *pressureCmd) warm() time.Duration { return min(time.Second, c.Duration/4) }

// messageBytes is what a message counts in a mailbox.
func (c *pressureCmd) messageBytes() int { return c.Size + 32 }

// mostUnderway is how much may be under way on one connection when its sender hears that a mailbox is full, by the
// defaults of a node: its window, its buffer, a frame over each.
const mostUnderway = 1<<20 + 512<<10 + 2*(1<<20+1<<10)

// pressureLine is the last line of loadgen pressure, but for its figures, which stand beside these. "Even" turns are
// those in which no entity is slow. Bytes of heaps and mailboxes are the largest of looks every 10 ms.
type pressureLine struct {
	Entities int               `json:"entities"`
	Senders  int               `json:"senders"`
	Tellers  int               `json:"tellers"`
	SlowMs   float64           `json:"slow_ms"`
	Mailbox  int               `json:"mailbox_bytes"`
	Bound    int               `json:"slow_mailbox_bound_bytes"` // the mailbox, and what senders may have under way
	Rounds   int               `json:"rounds"`
	Seconds  float64           `json:"turn_s"`
	Accepted uint64            `json:"accepted"`
	Handled  uint64            `json:"handled"`
	Dropped  uint64            `json:"dropped"` // reported as undelivered, for whatever reason
	Reported map[string]uint64 `json:"reported"`
	Lost     int64             `json:"lost"`   // accepted and neither handled nor reported
	Failed   uint64            `json:"failed"` // calls that returned an error before their turn was over
	FirstErr string            `json:"first_error,omitempty"`
	Figures  bench.Figures     `json:"figures"` // medians over rounds
}

// pressured is a running loadgen pressure.
type pressured struct {
	*pressureCmd
	*crew
	progress *cli.Progress
	line     pressureLine
	slow     uint64 // accepted messages to the slow entity
	done     []bench.Figures
}

// Run forms the cluster, takes turns without and with a slow entity, and reports.
func (c *pressureCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends this process, and with it its children
	crew, err := startCrew(ctx, e, crewArgs{receivers: 1, more: c.Senders - 1, shards: c.Shards})
	if err != nil {
		return err
	}
	defer crew.end()
	p := &pressured{pressureCmd: c, crew: crew, progress: cli.NewProgress(e.Stderr, c.Progress)}
	p.line = pressureLine{Entities: c.Entities, Senders: c.Senders, Tellers: c.Tellers,
		SlowMs: float64(c.Slow.Microseconds()) / 1e3, Mailbox: c.Mailbox, Bound: c.Mailbox + c.Senders*mostUnderway,
		Rounds: c.Rounds, Seconds: c.Duration.Seconds()}
	if err := p.measure(ctx); err != nil {
		return err
	}
	if err := crew.leave(context.Background()); err != nil {
		return err
	}
	p.line.Figures = bench.Medians(p.done)
	if err := cli.Line(e.Stdout, "pressure", p.line); err != nil {
		return err
	}
	return p.verdict()
}

var errPressure = errors.New("not what back-pressure promises")

// verdict is nil when all that was accepted was handled.
func (p *pressured) verdict() error {
	if l := &p.line; l.Dropped != 0 || l.Lost != 0 || l.Failed != 0 {
		return fmt.Errorf("%w: %d of %d accepted messages were dropped, %d lost, %d calls failed", errPressure, l.Dropped,
			l.Accepted, l.Lost, l.Failed)
	}
	return nil
}

func (p *pressured) measure(ctx context.Context) error {
	join := pressJoinArgs{Shards: p.Shards, Mailbox: p.Mailbox, Role: sinkRole}
	if err := fleet.Tell(ctx, p.all(), "press-join", join); err != nil {
		return err
	}
	if err := fleet.Tell(ctx, p.senders(), "press-know", pressKnowArgs{p.Entities}); err != nil {
		return err
	}
	p.progress.Printf("%d processes up, %d entities found", len(p.all()), p.Entities)
	for i := range p.Rounds {
		f := bench.Figures{}
		turns := []struct {
			name string
			slow time.Duration
		}{{"even", 0}, {"slow", p.Slow}}
		if i%2 == 1 { // whatever the machine does in time must not favour one of them
			turns[0], turns[1] = turns[1], turns[0]
		}
		for _, turn := range turns {
			if err := p.turn(ctx, f, turn.name, turn.slow); err != nil {
				return fmt.Errorf("round %d, %s: %w", i+1, turn.name, err)
			}
		}
		f.Ratio("others_ratio", "others_rate_slow", "others_rate_even")
		f.Ratio("others_cpu_ratio", "others_cpu_ns_slow", "others_cpu_ns_even")
		p.progress.Printf("round %d of %d: the others keep %.3f of %.0f /s, at %.3f of the CPU time", i+1, p.Rounds,
			f["others_ratio"], f["others_rate_even"], f["others_cpu_ratio"])
		p.done = append(p.done, f)
	}
	return p.ended(ctx)
}

// turn runs the load once and adds its figures to f, their names with suffix name.
func (p *pressured) turn(ctx context.Context, f bench.Figures, name string, slow time.Duration) error {
	receiver := p.first()
	if err := receiver.Call(ctx, "press-slow", pressSlowArgs{slow}, nil); err != nil {
		return err
	}
	if err := fleet.Tell(ctx, p.all(), "press-watch", cli.None{}); err != nil {
		return err
	}
	began, err := p.look(ctx)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- p.send(ctx) }()
	before, after, err := p.middle(ctx)
	if failed := <-sent; failed != nil {
		err = failed
	}
	if err != nil {
		return err
	}
	took, others := (after.receiver.At - before.receiver.At).Seconds(), after.receiver.Others-before.receiver.Others
	f.Set("others_rate_"+name, float64(others)/took)
	f.Set("others_cpu_ns_"+name, float64(after.cpu-before.cpu)/float64(others))
	f.Set("first_rate_"+name, float64(after.receiver.Slow-before.receiver.Slow)/took)
	if err := p.costs(ctx, f, name); err != nil {
		return err
	}
	ended, err := p.look(ctx)
	if err != nil {
		return err
	}
	f.Set("waits_"+name, float64(ended.waits-began.waits))
	f.Set("filled_"+name, float64(ended.receiver.Pressure.Filled-began.receiver.Pressure.Filled))
	f.Set("first_mailbox_bytes_"+name, float64(p.slow-ended.receiver.Slow)*float64(p.messageBytes()))
	if err := receiver.Call(ctx, "press-slow", pressSlowArgs{}, nil); err != nil {
		return err
	}
	if _, err := p.settled(ctx); err != nil {
		return err
	}
	return p.peaks(ctx, f, name)
}

// send makes all senders send, and books what they did.
func (p *pressured) send(ctx context.Context) error {
	load := bench.PressLoad{Entities: p.Entities, Tellers: p.Tellers, Size: p.Size,
		Fill: 2 * p.Mailbox / p.messageBytes() / p.Senders, Duration: p.Duration + 2*p.warm()}
	all, err := fleet.Ask[bench.PressResult](ctx, p.senders(), "press", load)
	for _, r := range all {
		p.slow += r.Slow
		p.line.Accepted += r.Slow + r.Others
		p.line.Failed += r.Failed
		p.line.FirstErr = cmp.Or(p.line.FirstErr, r.FirstErr)
	}
	return err
}

// middle waits for the middle of a turn and returns how things stood when it began and when it ended.
func (p *pressured) middle(ctx context.Context) (before, after pressLooks, err error) {
	cli.Pause(ctx, p.warm())
	if before, err = p.look(ctx); err != nil {
		return before, after, err
	}
	cli.Pause(ctx, p.Duration)
	after, err = p.look(ctx)
	return before, after, err
}

// costs measures what a call costs its sender now: in an even turn when nothing is full, else beside what is.
func (p *pressured) costs(ctx context.Context, f bench.Figures, name string) error {
	var got bench.Figures
	err := p.sender.Call(ctx, "press-cost", pressCostArgs{"_" + name}, &got)
	f.Merge(got)
	return err
}

// pressLooks is how things stand at all processes.
type pressLooks struct {
	receiver pressLook
	waits    uint64            // of all senders
	cpu      time.Duration     // of all processes
	reports  map[string]uint64 // of all processes
}

func (p *pressured) look(ctx context.Context) (l pressLooks, err error) {
	l.reports = map[string]uint64{}
	for _, one := range p.all() {
		var got pressLook
		if err := one.Call(ctx, "press-look", cli.None{}, &got); err != nil {
			return l, err
		}
		l.cpu += got.CPU
		for reason, n := range got.Reports {
			l.reports[reason] += n
		}
		if l.waits += got.Pressure.Waits; one == p.first() {
			l.receiver = got
		}
	}
	return l, nil
}

// settled waits until all that was accepted has been handled or reported, or nothing comes any more.
func (p *pressured) settled(ctx context.Context) (l pressLooks, err error) {
	for end := time.Now().Add(flushLimit); ; cli.Pause(ctx, 10*time.Millisecond) {
		if l, err = p.look(ctx); err != nil {
			return l, err
		}
		if l.receiver.Slow+l.receiver.Others+l.dropped() >= p.line.Accepted || time.Now().After(end) {
			return l, ctx.Err()
		}
	}
}

func (l *pressLooks) dropped() (n uint64) {
	for _, count := range l.reports {
		n += count
	}
	return n
}

// peaks adds what the processes held at most in a turn.
func (p *pressured) peaks(ctx context.Context, f bench.Figures, name string) error {
	all, err := fleet.Ask[bench.Peak](ctx, p.all(), "press-peak", cli.None{})
	if err != nil {
		return err
	}
	senders, peak := all[:len(all)-1], all[len(all)-1]
	p.progress.Printf("%s: receiver's %v", name, peak)
	f.Set("receiver_heap_mb_"+name, float64(peak.Heap)/1e6)
	f.Set("mailboxes_bytes_"+name, float64(peak.Mailboxes))
	for _, s := range senders {
		f.Set("sender_heap_mb_"+name, max(f["sender_heap_mb_"+name], float64(s.Heap)/1e6))
	}
	return nil
}

// ended takes the account at the end.
func (p *pressured) ended(ctx context.Context) error {
	l, err := p.settled(ctx)
	if err != nil {
		return err
	}
	p.line.Reported, p.line.Dropped = l.reports, l.dropped()
	p.line.Handled = l.receiver.Slow + l.receiver.Others
	p.line.Lost = int64(p.line.Accepted) - int64(p.line.Handled+p.line.Dropped)
	f := bench.Figures{}
	all, err := fleet.Ask[pressLook](ctx, p.all(), "press-look", cli.None{})
	if err != nil {
		return err
	}
	f.Set("receiver_peak_rss_mb", float64(all[len(all)-1].PeakRSS)/1e6)
	for _, s := range all[:len(all)-1] {
		f.Set("sender_peak_rss_mb", max(f["sender_peak_rss_mb"], float64(s.PeakRSS)/1e6))
	}
	p.done = append(p.done, f)
	return nil
}
