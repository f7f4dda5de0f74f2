// The proxy carrier: nodes on loopback, each of which is known by the address of a proxy that can fail on its ways.

package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// proxies is the carrier: one proxy stands before each node.
type proxies struct {
	slots []*proxy

	mu      sync.Mutex
	ways    links
	changed chan struct{} // closed and made anew when ways changes
	rng     *rand.Rand
	ctx     context.Context
	cancel  context.CancelFunc
	busy    sync.WaitGroup
}

// proxy accepts what is dialled to one node.
type proxy struct {
	all  *proxies
	slot int
	ln   *net.TCPListener
	self netip.AddrPort

	mu   sync.Mutex
	host string // where the node itself listens
	back string // host:port, empty before the first start
}

// ownHost returns an address of loopback for a slot. On Linux, where all of 127/8 is there, no two slots share one, and
// no two runs; part is where in it they begin.
func ownHost(part, slot int) string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", part+os.Getpid()>>8&63, os.Getpid()&255, slot+1)
}

func newProxies(nodes int, seed uint64) (*proxies, error) {
	p := &proxies{ways: newLinks(nodes), changed: make(chan struct{}), rng: rand.New(rand.NewPCG(seed, 1))}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for i := range nodes {
		host := ownHost(64, i)
		ln, err := net.Listen("tcp4", host+":0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("proxy of n%d: %w", i+1, err), p.close())
		}
		one := &proxy{all: p, slot: i, ln: ln.(*net.TCPListener), host: host}
		one.self = ln.Addr().(*net.TCPAddr).AddrPort()
		p.slots = append(p.slots, one)
	}
	for _, one := range p.slots {
		p.busy.Go(one.accept)
	}
	return p, nil
}

func (p *proxies) about() string {
	return "proxy: loopback, a proxy before each node (a lost packet comes later, as on TCP)"
}
func (p *proxies) can(k Kind) bool        { return k != SlowLink && k != DNS }
func (p *proxies) wrap(int, *cli.Options) {}

// place finds a port for the node itself. Somebody else may take it before the node does: its start fails then, and
// the next has another one.
func (p *proxies) place(slot int) (listen, advertise string, err error) {
	one := p.slots[slot]
	ln, err := net.Listen("tcp4", one.host+":0")
	if err != nil {
		return "", "", fmt.Errorf("port of n%d: %w", slot+1, err)
	}
	defer ln.Close()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.back = ln.Addr().String()
	return one.back, one.self.String(), nil
}

func (p *proxies) apply(l links) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ways = l
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

func (p *proxies) close() error {
	p.cancel()
	for _, one := range p.slots {
		_ = one.ln.Close()
	}
	p.busy.Wait()
	return nil
}

// look returns what a way does, and what tells that this has changed. Lot is a number below 1000 to decide by.
func (p *proxies) look(from, to int) (l link, lot int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from >= 0 && to >= 0 {
		l = p.ways[from][to]
	}
	return l, p.rng.IntN(1000), p.changed
}

// open waits until a lane of a way is not cut, and reports false when the carrier is closed before.
func (p *proxies) open(from, to int, l lane) bool {
	for {
		way, _, changed := p.look(from, to)
		if !way.Cut.has(l) {
			return p.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return false
		}
	}
}

// slotOf returns the slot of an address, -1 when it is nobody's.
func (p *proxies) slotOf(a netip.AddrPort) int {
	return slices.IndexFunc(p.slots, func(one *proxy) bool { return one.self == a })
}

// accept takes what is dialled until the listener is closed.
func (x *proxy) accept() {
	for {
		c, err := x.ln.AcceptTCP()
		if err != nil {
			return
		}
		x.all.busy.Go(func() { x.serve(c) })
	}
}

// helloTime is how long a dialler has for its hello.
const helloTime = 10 * time.Second

// serve reads which node dials, dials the node behind, and carries bytes both ways.
func (x *proxy) serve(c *net.TCPConn) {
	begin := make([]byte, 0, helloBytes)
	from, l := -1, controlLane
	_ = c.SetReadDeadline(time.Now().Add(helloTime))
	for more := true; more && len(begin) < cap(begin); {
		n, err := c.Read(begin[len(begin):cap(begin)])
		if err != nil {
			_ = c.Close()
			return
		}
		begin = begin[:len(begin)+n]
		var dialler netip.AddrPort
		var ok bool
		if l, dialler, ok, more = splitHello(begin); ok {
			from = x.all.slotOf(dialler)
		}
	}
	_ = c.SetReadDeadline(time.Time{})
	// A dialler learns nothing of a host behind a cut.
	if !x.all.open(from, x.slot, l) || !x.all.open(x.slot, from, l) {
		_ = c.Close()
		return
	}
	x.mu.Lock()
	back := x.back
	x.mu.Unlock()
	d, err := net.DialTimeout("tcp4", back, helloTime)
	if err != nil { // the process is dead
		abort(c)
		return
	}
	newPair(x.all, c, d.(*net.TCPConn), from, x.slot, l).run(begin)
}

// abort closes a connection with a reset.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// What a proxy has to know of a connection: the dialler and the lane, both in the hello that it begins with.

// Where things stand in a hello: see docs/contributing/wire.md.
const (
	helloMagic    = "KITH"
	helloMagicAt  = 8
	helloLaneAt   = 16
	helloNameAt   = 43
	helloFormIPv4 = 4
)

// helloBytes is enough of a hello to know all: the name of the cluster has at most 64 bytes.
const helloBytes = helloNameAt + 1 + 64 + 1 + 4 + 2

// splitHello returns the lane of a connection and the IPv4 address that its dialler is known by. ok is false when b is
// no hello of that form; more when b may be the beginning of one.
func splitHello(b []byte) (l lane, from netip.AddrPort, ok, more bool) {
	if len(b) <= helloNameAt {
		return 0, from, false, true
	}
	name := int(b[helloNameAt])
	if string(b[helloMagicAt:helloMagicAt+4]) != helloMagic || b[helloLaneAt] >= byte(lanes) || name > 64 {
		return 0, from, false, false
	}
	rest := b[helloNameAt+1:]
	if len(rest) < name+7 {
		return 0, from, false, true
	}
	rest = rest[name:]
	if rest[0] != helloFormIPv4 {
		return 0, from, false, false
	}
	from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[1:5])), binary.LittleEndian.Uint16(rest[5:7]))
	return lane(b[helloLaneAt]), from, true, false
}
