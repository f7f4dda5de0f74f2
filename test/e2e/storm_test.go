// A storm over real sockets: nodes in one process that reach each other through doors which cut, reset and hold up what
// goes through, drawn by a seed. The simulator's storms have no sockets; this one has nothing else.

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/port"
)

// door forwards connections to a node. While it is wild it does things to chunks of bytes.
type door struct {
	ln     net.Listener
	to     string
	seed   uint64
	wild   atomic.Bool
	faults [doorFaults]atomic.Int64

	mu    sync.Mutex
	open  map[net.Conn]bool
	count uint64
	tasks sync.WaitGroup
}

// What a door does to a chunk, or rather to its connection.
const (
	resetBehind = iota // it goes through, then the receiver's end is reset
	resetInside        // half of it goes through, then the same
	resetBoth          // nothing of it, and both ends are reset
	closeInside        // half of it goes through, then both ends are closed in order
	holdUp             // it waits
	doorFaults
)

func newDoor(t *testing.T, seed uint64) *door {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &door{ln: ln, to: port.Keep(t), seed: seed, open: map[net.Conn]bool{}}
	d.tasks.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			d.tasks.Go(func() { d.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		d.mu.Lock()
		for c := range d.open {
			_ = c.Close()
		}
		d.open = nil
		d.mu.Unlock()
		d.tasks.Wait()
	})
	return d
}

// keep notes a connection so that the end of the test closes it; false when that has come.
func (d *door) keep(c net.Conn) (number uint64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		_ = c.Close()
		return 0, false
	}
	d.open[c] = true
	d.count++
	return d.count, true
}

func (d *door) serve(c net.Conn) {
	number, ok := d.keep(c)
	if !ok {
		return
	}
	o, err := net.Dial("tcp", d.to)
	if err == nil {
		_, ok = d.keep(o)
	}
	if err != nil || !ok {
		_ = c.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { d.carry(c, o, rand.New(rand.NewPCG(d.seed, 2*number))) })
	both.Go(func() { d.carry(o, c, rand.New(rand.NewPCG(d.seed, 2*number+1))) })
	both.Wait()
	d.mu.Lock()
	delete(d.open, c)
	delete(d.open, o)
	d.mu.Unlock()
}

// carry copies one direction until one of the ends is gone.
func (d *door) carry(from, to net.Conn, r *rand.Rand) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		fault := doorFaults
		if draw := r.IntN(200); draw < doorFaults && d.wild.Load() && n > 0 {
			fault = draw
			d.faults[fault].Add(1)
		}
		switch fault {
		case resetInside, closeInside:
			n /= 2
		case resetBoth:
			n = 0
		case holdUp:
			<-time.After(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		if _, bad := to.Write(b[:n]); bad != nil || err != nil {
			return
		}
		switch fault {
		case resetBoth:
			_ = from.(*net.TCPConn).SetLinger(0)
			fallthrough
		case resetBehind, resetInside:
			_ = to.(*net.TCPConn).SetLinger(0)
			return
		case closeInside:
			return
		}
	}
}

// stormSeconds says how long the storm is in each of its forms, in seconds, and stormSeed repeats its draws; what comes
// of them differs as sockets and goroutines do.
const stormSeconds, stormSeed = "KITH_STORM_SECONDS", "KITH_STORM_SEED"

func fromEnv(t *testing.T, name string, otherwise float64) float64 {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return v
}

// Connections that are cut, reset and held up behind, within and before chunks, of all lanes, under messages of every
// kind to entities of every mode: no node ends, and everybody is answered by everybody once it is over (CARD-3).
func TestStormOverSockets(t *testing.T) {
	ca, err := pki.NewCA("test", time.Hour)
	require.NoError(t, err)
	length := time.Duration(fromEnv(t, stormSeconds, 1.5) * float64(time.Second))
	seed := uint64(fromEnv(t, stormSeed, float64(time.Now().UnixNano()%1_000_000)))
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "tls"}[secure], func(t *testing.T) {
			t.Logf("%s=%d", stormSeed, seed)
			s := newSocketStorm(t, seed, func(cfg *kith.Config) {
				if secure {
					creds := issued(t, ca, "test")
					cfg.TLS.Load = func() (kith.Credentials, error) { return creds, nil }
				}
			})
			s.answered(t)
			s.rage(length)
			s.answered(t)
			for _, n := range s.nodes {
				require.NoError(t, n.Err())
			}
			var faults [doorFaults]int64
			for _, d := range s.doors {
				for i := range faults {
					faults[i] += d.faults[i].Load()
				}
			}
			t.Logf("faults %v, %d handled", faults, s.handled.Load())
		})
	}
}

var stormModes = []kith.Mode{kith.Inline, kith.Worker, kith.Blocking}

type socketStorm struct {
	nodes   []*kith.Node
	doors   []*door
	regions [][]*kith.Region // of each node, by mode
	handled atomic.Int64
}

func newSocketStorm(t *testing.T, seed uint64, change func(*kith.Config)) *socketStorm {
	s := &socketStorm{}
	s.nodes = cluster(t, 3, func(i int, cfg *kith.Config) {
		s.doors = append(s.doors, newDoor(t, seed+uint64(i)))
		cfg.Listen, cfg.Advertise = s.doors[i].to, s.doors[i].ln.Addr().String()
		// Nobody is given up here: what heals is to be seen.
		cfg.Membership = quick()
		cfg.Membership.AcceptablePause, cfg.Sharding.TakeoverTime, cfg.Window = patience, time.Hour, 64<<10
		cfg.Logger = nil
		change(cfg)
	}, func(i int, n *kith.Node) {
		var own []*kith.Region
		for _, mode := range stormModes {
			own = append(own, register(t, n, kith.EntityType{Name: mode.String(), Shards: 12, Mode: mode}, actor{
				receive: func(c *kith.Context, b []byte) error {
					s.handled.Add(1)
					if c.Asked() {
						return c.Reply(b)
					}
					return nil
				}}))
		}
		s.regions = append(s.regions, own)
	})
	return s
}

// answered waits until every node is answered by entities of all modes and of all shards.
func (s *socketStorm) answered(t *testing.T) {
	for _, own := range s.regions {
		for _, r := range own {
			for id := range 40 {
				eventually(t, func() bool {
					_, err := r.AskWithin(time.Second, strconv.Itoa(id), nil, nil)
					return err == nil
				}, "an answer of %d", id)
			}
		}
	}
}

// rage sends everything that there is while the doors are wild.
func (s *socketStorm) rage(length time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	for _, d := range s.doors {
		d.wild.Store(true)
		defer d.wild.Store(false)
	}
	var senders sync.WaitGroup
	for n, own := range s.regions {
		for _, r := range own {
			for k := range 2 {
				senders.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						id := fmt.Sprint((i*7 + n) % 40)
						switch {
						case k == 0:
							_ = r.TellWait(ctx, id, make([]byte, 1+i*37%4000))
						case i%20 == 0:
							big, stop := context.WithTimeout(ctx, 200*time.Millisecond)
							_ = r.TellBulk(big, id, make([]byte, 300_000), nil)
							stop()
						default:
							_, _ = r.AskWithin(100*time.Millisecond, id, make([]byte, i%300), nil)
						}
					}
				})
			}
		}
	}
	senders.Wait()
}
