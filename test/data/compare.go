// Compare: fenced records and registers on three processes beside three servers of etcd, and of NATS with JetStream, in
// turn, in one run, each with a sync of a majority behind every write; and NATS as it is by itself, which syncs later.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	etcd "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// compareCmd is the flags of the comparison.
type compareCmd struct {
	Callers int           `default:"64" help:"That write, and then read, one after the other; 1 to 1024."`
	For     time.Duration `default:"4s" help:"How long each system writes, and reads, in a round."`
	Rounds  int           `default:"2" help:"Each system has its turn in each."`
	Size    int           `default:"128" help:"Bytes of a value."`
	Nats    string        `placeholder:"FILE" help:"A nats-server, 2.10 or newer: also three of those, with JetStream; none: not."`
}

// figures are what came of one system's turn.
type figures struct {
	Writes   float64 `json:"writes"` // a second
	WriteP50 float64 `json:"write_p50_ms"`
	WriteP99 float64 `json:"write_p99_ms"`
	Reads    float64 `json:"reads"` // linearizable ones, a second
	ReadP50  float64 `json:"read_p50_ms"`
	ReadP99  float64 `json:"read_p99_ms"`
}

// comparison is the last line. Ratios are of kith to etcd: of writes and reads a second more is better, of times less.
type comparison struct {
	Callers   int       `json:"callers"`
	Size      int       `json:"size"`
	OneShard  []figures `json:"fenced_one_shard"`
	Shards    []figures `json:"fenced_32_shards"`
	Registers []figures `json:"registers"`
	Etcd      []figures `json:"etcd"`
	Nats      []figures `json:"nats_synced,omitempty"` // R3 in files, sync_interval always
	NatsLater []figures `json:"nats,omitempty"`        // the same with its own settings: synced every two minutes
	OneRatio  figures   `json:"one_shard_to_etcd"`
	Ratio     figures   `json:"32_shards_to_etcd"`
	RegRatio  figures   `json:"registers_to_etcd"`
	NatsRatio *figures  `json:"32_shards_to_nats_synced,omitempty"`
	RegToNats *figures  `json:"registers_to_nats_synced,omitempty"`
}

// Run prints the last line.
func (c *compareCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	r, err := c.compare(ctx, e)
	return env.Report(e, "compare", r, err)
}

func (c *compareCmd) compare(ctx context.Context, e *env.Env) (*comparison, error) {
	dir, err := os.MkdirTemp(".", "compare-") // beside what is measured elsewhere: not in memory
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	trio, err := startTrio(ctx, dir, e)
	defer trio.end()
	if err != nil {
		return nil, err
	}
	servers, err := startEtcd(ctx, dir)
	defer servers.end()
	if err != nil {
		return nil, err
	}
	var synced, later *natses
	if c.Nats != "" {
		synced, err = startNats(ctx, c.Nats, filepath.Join(dir, "nats-synced"), "always")
		defer synced.end()
		if err == nil {
			later, err = startNats(ctx, c.Nats, filepath.Join(dir, "nats"), "2m")
			defer later.end()
		}
		if err != nil {
			return nil, err
		}
	}
	r := &comparison{Callers: c.Callers, Size: c.Size}
	for range c.Rounds {
		for _, x := range []struct {
			to *[]figures
			a  measureArgs
		}{{&r.OneShard, measureArgs{"fenced", 1, c.Callers, c.Size, c.For}},
			{&r.Shards, measureArgs{"fenced", 32, c.Callers, c.Size, c.For}},
			{&r.Registers, measureArgs{"registers", 0, c.Callers, c.Size, c.For}}} {
			var f figures
			if err := trio.children[0].CallWithin(ctx, time.Minute, "measure", x.a, &f); err != nil {
				return r, err
			}
			*x.to = append(*x.to, f)
		}
		f, err := servers.measure(ctx, c)
		if err != nil {
			return r, err
		}
		r.Etcd = append(r.Etcd, f)
		if synced == nil {
			continue
		}
		for to, x := range map[*[]figures]*natses{&r.Nats: synced, &r.NatsLater: later} { // in any order
			if f, err = x.measure(ctx, c); err != nil {
				return r, err
			}
			*to = append(*to, f)
		}
	}
	if synced != nil {
		all, registers := ratio(r.Shards, r.Nats), ratio(r.Registers, r.Nats)
		r.NatsRatio, r.RegToNats = &all, &registers
	}
	r.OneRatio, r.Ratio, r.RegRatio = ratio(r.OneShard, r.Etcd), ratio(r.Shards, r.Etcd), ratio(r.Registers, r.Etcd)
	return r, nil
}

// ratio returns the means of a to those of b.
func ratio(a, b []figures) (r figures) {
	var sums [2]figures
	for i, list := range [][]figures{a, b} {
		s := &sums[i]
		for _, f := range list {
			s.Writes, s.WriteP50, s.WriteP99 = s.Writes+f.Writes, s.WriteP50+f.WriteP50, s.WriteP99+f.WriteP99
			s.Reads, s.ReadP50, s.ReadP99 = s.Reads+f.Reads, s.ReadP50+f.ReadP50, s.ReadP99+f.ReadP99
		}
	}
	x, y := sums[0], sums[1]
	return figures{x.Writes / y.Writes, x.WriteP50 / y.WriteP50, x.WriteP99 / y.WriteP99, x.Reads / y.Reads,
		x.ReadP50 / y.ReadP50, x.ReadP99 / y.ReadP99}
}

// measureArgs says what a node measures of its own stores.
type measureArgs struct {
	Store   string // fenced or registers
	Shards  int
	Callers int
	Size    int
	For     time.Duration
}

// measured has callers write for a time, and then read.
func measured(ctx context.Context, callers int, d time.Duration, write, read func(ctx context.Context, caller int) error) (
	f figures, err error) {
	if f.Writes, f.WriteP50, f.WriteP99, err = repeated(ctx, callers, d, write); err != nil {
		return f, fmt.Errorf("writing: %w", err)
	}
	if f.Reads, f.ReadP50, f.ReadP99, err = repeated(ctx, callers, d, read); err != nil {
		return f, fmt.Errorf("reading: %w", err)
	}
	return f, nil
}

func repeated(ctx context.Context, callers int, d time.Duration, do func(ctx context.Context, caller int) error) (
	perSecond, p50, p99 float64, err error) {
	var mu sync.Mutex
	var busy sync.WaitGroup
	all := hdrhistogram.New(1, 60_000_000, 3)
	began := time.Now()
	for i := range callers {
		busy.Go(func() {
			own := hdrhistogram.New(1, 60_000_000, 3)
			var failed error
			for failed == nil && time.Since(began) < d {
				at := time.Now()
				failed = do(ctx, i)
				_ = own.RecordValue(max(time.Since(at).Microseconds(), 1))
			}
			mu.Lock()
			defer mu.Unlock()
			all.Merge(own)
			err = errors.Join(err, failed)
		})
	}
	busy.Wait()
	took := time.Since(began).Seconds()
	return float64(all.TotalCount()) / took, float64(all.ValueAtQuantile(50)) / 1000,
		float64(all.ValueAtQuantile(99)) / 1000, err
}

// measure measures a store of this node. Its callers are in the node's process, where entities are.
func (c *child) measure(ctx context.Context, a measureArgs) (figures, error) {
	data := make([]byte, a.Size)
	if a.Store == "registers" {
		key := func(i int) []byte { return fmt.Appendf(nil, "key%d", i) }
		return measured(ctx, a.Callers, a.For, func(ctx context.Context, i int) error {
			_, err := c.registers.Put(ctx, key(i), data, nil)
			return err
		}, func(ctx context.Context, i int) error {
			_, err := c.registers.Get(ctx, key(i))
			return err
		})
	}
	s := c.registers.Fenced()
	c.epoch++
	f := route.MakeFence(c.epoch, 1, 1)
	shard := func(i int) store.Shard {
		return store.Shard{Type: fmt.Sprint("c", a.Shards), N: route.ShardID(i % a.Shards)}
	}
	versions := make([]uint64, a.Callers)
	for i := range a.Shards {
		if _, err := s.Claim(ctx, shard(i), f); err != nil {
			return figures{}, err
		}
	}
	for i := range versions {
		if list, err := s.Load(ctx, shard(i), f, fmt.Sprint(i)); err != nil {
			return figures{}, err
		} else if len(list) > 0 {
			versions[i] = list[0].Version
		}
	}
	return measured(ctx, a.Callers, a.For, func(ctx context.Context, i int) error {
		versions[i]++
		w := store.Write{New: versions[i] == 1}
		w.ID, w.Version, w.State, w.Nonce = fmt.Sprint(i), versions[i], data, [16]byte{byte(c.epoch), byte(versions[i])}
		return s.Commit(ctx, shard(i), f, w)
	}, func(ctx context.Context, i int) error {
		_, err := s.Load(ctx, shard(i), f, fmt.Sprint(i))
		return err
	})
}

// trio is three node processes.
type trio struct{ children []*cli.Child }

// startTrio starts them, and returns when the stores are ready.
func startTrio(ctx context.Context, dir string, e *env.Env) (*trio, error) {
	x := &trio{}
	var addrs []string
	for i := range 3 {
		addr, err := freeAddr()
		if err != nil {
			return x, err
		}
		o := e.Self("node-child", false)
		o.Name, o.Stderr = fmt.Sprint("node ", i+1), io.Discard
		child, err := cli.Start(o)
		if err != nil {
			return x, err
		}
		x.children = append(x.children, child)
		a := startArgs{Listen: addr, Advertise: addr, Seeds: addrs, Dir: filepath.Join(dir, fmt.Sprint("node", i+1)),
			Zero: cli.MachineTime(), Founders: 3, Plain: true}
		if err := child.CallWithin(ctx, startTime, "start", a, nil); err != nil {
			return x, err
		}
		addrs = append(addrs, addr)
	}
	for _, child := range x.children {
		if err := child.CallWithin(ctx, startTime, "ready", cli.None{}, nil); err != nil {
			return x, err
		}
	}
	return x, nil
}

func (x *trio) end() {
	for _, c := range x.children {
		c.Kill()
	}
}

// ready waits until the stores of this node have begun.
func (c *child) ready(ctx context.Context, _ cli.None) (cli.None, error) {
	return cli.None{}, errors.Join(c.registers.Ready(ctx), c.siblings.Ready(ctx))
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// etcds is three servers of etcd, and a client.
type etcds struct {
	commands []*exec.Cmd
	client   *etcd.Client
}

// startEtcd starts them with the settings that etcd has of itself: a majority syncs its log before an answer.
func startEtcd(ctx context.Context, dir string) (*etcds, error) {
	x := &etcds{}
	var peers, clients, initial []string
	for i := range 3 {
		peer, err := freeAddr()
		if err != nil {
			return x, err
		}
		client, err := freeAddr()
		if err != nil {
			return x, err
		}
		peers, clients = append(peers, "http://"+peer), append(clients, "http://"+client)
		initial = append(initial, fmt.Sprintf("e%d=http://%s", i, peer))
	}
	for i := range 3 {
		cmd := exec.Command("etcd", "--name", fmt.Sprint("e", i), "--data-dir", filepath.Join(dir, fmt.Sprint("etcd", i)),
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--listen-client-urls", clients[i],
			"--advertise-client-urls", clients[i], "--initial-cluster", strings.Join(initial, ","), "--log-level", "error")
		if err := cmd.Start(); err != nil {
			return x, fmt.Errorf("etcd (Debian: apt-get install etcd-server): %w", err)
		}
		x.commands = append(x.commands, cmd)
	}
	client, err := etcd.New(etcd.Config{Endpoints: clients, Logger: zap.NewNop(), DialTimeout: time.Minute})
	if err != nil {
		return x, err
	}
	x.client = client
	for {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := client.Put(short, "ready", "")
		cancel()
		if err == nil {
			return x, nil
		}
		if !cli.Pause(ctx, 100*time.Millisecond) {
			return x, err
		}
	}
}

func (x *etcds) end() {
	if x.client != nil {
		_ = x.client.Close()
	}
	for _, c := range x.commands {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// measure measures etcd, by a client of this process.
func (x *etcds) measure(ctx context.Context, c *compareCmd) (figures, error) {
	data := string(make([]byte, c.Size))
	return measured(ctx, c.Callers, c.For, func(ctx context.Context, i int) error {
		_, err := x.client.Put(ctx, fmt.Sprint("key", i), data)
		return err
	}, func(ctx context.Context, i int) error {
		_, err := x.client.Get(ctx, fmt.Sprint("key", i))
		return err
	})
}
