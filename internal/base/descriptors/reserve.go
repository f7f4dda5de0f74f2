// Package descriptors holds some file descriptors in reserve, for the connections of peers when the process has none
// left. A node that can neither dial a peer nor take its connection accuses it, and is accused, so a healthy peer could
// end with it.
package descriptors

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// Most is how many descriptors are held: four connections of each of eight peers that come anew at one time.
	Most = 32
	// share is the part of the limit that is held at most: an eighth.
	share = 8
	// tries is how many descriptors one call is given that fails for want of one: others of the process take
	// what becomes free as well.
	tries = 4
	// calm is how long nothing of the reserve was needed until that is said.
	calm = 10 * time.Second
)

// Reserve holds descriptors that are given up when a connection of a peer needs one and the process has none left, and
// taken back as soon as there are some. Its zero value holds none. It is safe for concurrent use.
type Reserve struct {
	log  *slog.Logger
	hold func() (int, error) // takes one descriptor
	drop func(int)           // and gives it back

	most int

	mu     sync.Mutex
	closed bool
	held   []int
	lent   int       // enrolments under way: nothing is taken back
	inUse  bool      // this was said
	needed time.Time // when last
}

// Init takes the reserve.
func (r *Reserve) Init(log *slog.Logger) {
	r.log, r.hold, r.drop = log, hold, release
	r.most = int(min(Most, Limit()/share))
	r.Refill()
}

// give gives one descriptor up, if more than keep are held.
func (r *Reserve) give(keep int) bool {
	r.mu.Lock()
	gave := r.leave(keep)
	first := gave && r.need()
	r.mu.Unlock()
	r.say(first)
	return gave
}

// ForComer gives one descriptor up for a connection that comes, perhaps from a stranger: half of them stay
// for what this node dials.
func (r *Reserve) ForComer() bool { return r.give(r.most / 2) }

// leave gives up the lowest number: where the limit was lowered while the process runs the higher ones are no help. The
// lock is held.
func (r *Reserve) leave(keep int) bool {
	if len(r.held) <= keep {
		return false
	}
	lowest := slices.Min(r.held)
	r.held = slices.DeleteFunc(r.held, func(fd int) bool { return fd == lowest })
	r.drop(lowest)
	return true
}

// need notes that the process has no descriptor left, and reports whether that is to be said. The lock is held.
func (r *Reserve) need() bool {
	first := !r.inUse
	r.inUse, r.needed = true, time.Now()
	return first
}

func (r *Reserve) say(first bool) {
	if first {
		r.log.Warn("no file descriptor is left: connections of peers take those held in reserve", "limit",
			Limit(), "reserve", r.most)
	}
}

// Held returns how many are held.
func (r *Reserve) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

// Refill takes back what is missing, as far as there is any.
func (r *Reserve) Refill() {
	r.mu.Lock()
	first := r.fill()
	r.mu.Unlock()
	r.say(first)
}

// fill is Refill; the lock is held. It reports whether it is to be said that none is left.
func (r *Reserve) fill() (first bool) {
	for !r.closed && r.lent == 0 && len(r.held) < r.most {
		fd, err := r.hold()
		if err != nil {
			return None(err) && r.need()
		}
		r.held = append(r.held, fd)
	}
	return false
}

// Look takes back what is missing, and says when the reserve is whole and more are left for others.
func (r *Reserve) Look() {
	r.mu.Lock()
	first := r.fill()
	over := r.inUse && r.lent == 0 && len(r.held) == r.most && time.Since(r.needed) >= calm
	if over {
		fd, err := r.hold()
		if over = err == nil; over {
			r.drop(fd)
		}
	}
	if over {
		r.inUse = false
	}
	r.mu.Unlock()
	r.say(first)
	if over {
		r.log.Warn("file descriptors are left again: the reserve for peers is whole", "limit", Limit(),
			"reserve", r.most)
	}
}

// Lend leaves one descriptor free while f runs, which needs it for its time only and cannot be tried twice.
func (r *Reserve) Lend(f func() error) error {
	r.mu.Lock()
	r.lent++
	r.leave(0)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.lent--
		first := r.fill()
		r.mu.Unlock()
		r.say(first)
	}()
	return f()
}

// GiveAll ends the reserve.
func (r *Reserve) GiveAll() {
	r.mu.Lock()
	r.closed = true
	for r.leave(0) {
	}
	r.mu.Unlock()
}

// With calls f, and again with a descriptor of the reserve while f fails because none is left.
func With[T any](r *Reserve, f func() (T, error)) (T, error) {
	v, err := f()
	for try := 0; try < tries && None(err) && r.give(0); try++ {
		v, err = f()
	}
	return v, err
}

// Dial is how an address is dialled.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Dial dials by d, and again with a descriptor of the reserve when none is left.
func (r *Reserve) Dial(d Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		defer r.Refill()
		return With(r, func() (net.Conn, error) { return d(ctx, network, addr) })
	}
}

// LookupNetIP looks up a name by what the machine has for that.
func (r *Reserve) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	defer r.Refill()
	return With(r, func() ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, network, host)
	})
}

// None reports whether err says that the process, or the system, has no descriptor left. Of what a look-up of a
// name met only the words are there.
func None(err error) bool {
	var dns *net.DNSError
	for _, none := range []error{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, none) || errors.As(err, &dns) && strings.Contains(dns.Err, none.Error()) {
			return true
		}
	}
	return false
}
