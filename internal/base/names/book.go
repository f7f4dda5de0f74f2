// Book: what is remembered of names, and how they are dialled.

package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Book dials names and remembers which of their addresses stood. It is safe for concurrent use. Its look-ups end with
// the context that it was made with.
type Book struct {
	resolver Resolver
	dial     Dial
	ctx      context.Context

	lock  sync.Mutex
	hosts map[string]*page
	under int
	turns uint64 // counts uses
}

// page is what is known of one name.
type page struct {
	asked *answer      // the look-up that is under way, or the last one that nobody waited for
	over  bool         // it is not under way any more
	good  []netip.Addr // that stood, the last one first
	past  []netip.Addr // that were passed, the last one last
	used  uint64
}

// New returns an empty Book. A nil resolver means that of the machine.
func New(ctx context.Context, r Resolver) *Book {
	if r == nil {
		r = net.DefaultResolver
	}
	var d net.Dialer
	return &Book{resolver: r, dial: d.DialContext, ctx: ctx, hosts: map[string]*page{}}
}

// DialContext dials host:port over TCP within ctx. Of a name all addresses are tried, one beside the other, those first
// that stood before. When the look-up fails, or has not answered for a while, those are dialled alone; a look-up that
// takes longer than ctx goes on, and the next dial has what it finds. Errors: *LookupError when no address was known,
// which joins the errors of remembered addresses that did not answer; those of the dials.
func (b *Book) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return b.by(ctx, b.dial, network, addr)
}

// DialBy is DialContext over TCP with a way of one's own to dial an IP address and port.
func (b *Book) DialBy(ctx context.Context, dial Dial, addr string) (net.Conn, error) {
	return b.by(ctx, dial, "tcp", addr)
}

// Dial dials an IP address and port, as a net.Dialer does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

func (b *Book) by(ctx context.Context, dial Dial, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return dial(ctx, network, addr)
	}
	d := &dialling{b: b, dial: dial, network: network, host: host, port: port}
	return d.run(ctx)
}

// Known returns the addresses that the last look-up of a name gave, nil when none is remembered; of an IP address
// itself. The slice is the caller's.
func (b *Book) Known(host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}
	}
	b.lock.Lock()
	p := b.hosts[host]
	var a *answer
	if p != nil {
		a = p.asked
	}
	b.lock.Unlock()
	if a == nil {
		return nil
	}
	list, _ := a.known()
	return list
}

// page returns the page of a name and makes it if need be. The lock is held.
func (b *Book) page(host string) *page {
	p := b.hosts[host]
	if p == nil {
		if len(b.hosts) >= MaxHosts {
			b.evict()
		}
		p = &page{over: true}
		b.hosts[host] = p
	}
	b.turns++
	p.used = b.turns
	return p
}

// evict forgets the name that was used longest ago. The lock is held.
func (b *Book) evict() {
	oldest, least := "", b.turns+1
	for host, p := range b.hosts { // whatever the order: no two were used at one turn
		if p.used < least {
			oldest, least = host, p.used
		}
	}
	delete(b.hosts, oldest)
}

// ask returns the look-up of a name: one that is under way, one that came too late for the last caller, or a new
// one; and what is remembered.
func (b *Book) ask(host string) (a *answer, good []netip.Addr, err error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	p := b.page(host)
	good = slices.Clone(p.good)
	if p.asked != nil && (!p.over || p.asked.late()) {
		return p.asked, good, nil
	}
	if b.under >= maxUnder {
		return nil, good, &LookupError{Host: host, Err: ErrBusy}
	}
	b.under++
	a = newAnswer(host)
	p.asked, p.over = a, false
	go func() {
		ctx, cancel := context.WithTimeout(b.ctx, askTime)
		defer cancel()
		a.ask(ctx, b.resolver)
		b.lock.Lock()
		defer b.lock.Unlock()
		b.under--
		if p.asked == a {
			p.over = true
		}
	}()
	return a, good, nil
}

// late reports whether the answer came after its asker had gone, and not long ago.
func (a *answer) late() bool {
	at := a.at.Load()
	return a.missed.Load() && at != 0 && time.Since(time.Unix(0, at)) < lateFor
}

// stood notes that an address of a name took a connection.
func (b *Book) stood(host string, ip netip.Addr) {
	b.lock.Lock()
	defer b.lock.Unlock()
	p := b.page(host)
	p.good = slices.DeleteFunc(p.good, func(o netip.Addr) bool { return o == ip })
	p.good = slices.Insert(p.good, 0, ip)
	p.good = p.good[:min(len(p.good), maxGood)]
}

// Pass makes the next dials of host:port begin with other addresses of its name than the one that stood last, which is
// tried when no other one stands. Of addresses that were all passed the one that was passed first comes first.
func (b *Book) Pass(addr string) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	p := b.hosts[host]
	if p == nil || len(p.good) == 0 {
		return
	}
	ip := p.good[0]
	p.past = append(slices.DeleteFunc(p.past, func(o netip.Addr) bool { return o == ip }), ip)
	p.past = p.past[max(0, len(p.past)-maxPast):]
}

// inOrder puts those behind that were passed.
func (b *Book) inOrder(host string, list []netip.Addr) []netip.Addr {
	b.lock.Lock()
	defer b.lock.Unlock()
	if p := b.hosts[host]; p != nil && len(p.past) > 0 {
		slices.SortStableFunc(list, func(x, y netip.Addr) int { return slices.Index(p.past, x) - slices.Index(p.past, y) })
	}
	return list
}

// dialling is one dial of a name.
type dialling struct {
	b                   *Book
	dial                Dial
	network, host, port string

	tried []netip.Addr
	errs  []error
}

// run dials.
func (d *dialling) run(ctx context.Context) (net.Conn, error) {
	a, good, err := d.b.ask(d.host)
	if err != nil {
		d.errs = append(d.errs, err)
		return d.try(ctx, good)
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	remembered := wait.C
	if len(good) == 0 {
		remembered = nil
	}
	select {
	case <-a.some:
		d.graced(ctx, a)
	case <-a.all:
	case <-remembered:
		if nc, err := d.try(ctx, good); err == nil {
			return nc, nil
		}
		select {
		case <-a.some:
		case <-a.all:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	list, err := a.known()
	if err != nil {
		a.missed.Store(true)
		d.errs = append(d.errs, err)
		return d.try(ctx, good)
	}
	nc, err := d.try(ctx, preferred(list, good))
	if err == nil || ctx.Err() != nil {
		if err != nil {
			a.missed.Store(true)
		}
		return nc, err
	}
	select { // the other family may still come
	case <-a.all:
	case <-ctx.Done():
	}
	list, _ = a.known()
	return d.try(ctx, list)
}

// graced waits a little for the second family.
func (d *dialling) graced(ctx context.Context, a *answer) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-a.all:
	case <-t.C:
	case <-ctx.Done():
	}
}

// preferred puts those first that stood.
func preferred(list, good []netip.Addr) []netip.Addr {
	first := slices.DeleteFunc(slices.Clone(good), func(ip netip.Addr) bool { return !slices.Contains(list, ip) })
	for _, ip := range list {
		if !slices.Contains(first, ip) {
			first = append(first, ip)
		}
	}
	return first
}

// try dials those addresses that were not tried before, the next one beside the one before when that takes long, and
// returns the first connection. Without one it returns all errors so far.
func (d *dialling) try(ctx context.Context, list []netip.Addr) (net.Conn, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(ip netip.Addr) bool { return slices.Contains(d.tried, ip) })
	list = d.b.inOrder(d.host, list)
	d.tried = append(d.tried, list...)
	type result struct {
		nc  net.Conn
		ip  netip.Addr
		err error
	}
	results := make(chan result, len(list))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	under := 0
	begin := func() {
		ip := list[0]
		list = list[1:]
		under++
		go func() {
			nc, err := d.dial(ctx, d.network, net.JoinHostPort(ip.String(), d.port))
			results <- result{nc, ip, err}
		}()
	}
	next := time.NewTicker(nextAfter)
	defer next.Stop()
	for under > 0 || len(list) > 0 {
		if under == 0 {
			begin()
		}
		select {
		case r := <-results:
			if under--; r.err != nil {
				d.errs = append(d.errs, r.err)
				continue
			}
			d.b.stood(d.host, r.ip)
			cancel()
			go func() {
				for range under {
					if o := <-results; o.nc != nil {
						_ = o.nc.Close()
					}
				}
			}()
			return r.nc, nil
		case <-next.C:
			if len(list) > 0 {
				begin()
			}
		}
	}
	return nil, d.failed()
}

// failed returns why there is no connection.
func (d *dialling) failed() error {
	switch len(d.errs) {
	case 0:
		return &LookupError{Host: d.host, Err: errors.New("no address")}
	case 1:
		return d.errs[0]
	}
	return fmt.Errorf("dial %s: %w", d.host, errors.Join(d.errs...))
}
