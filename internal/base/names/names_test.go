// Tests of names: families apart, what is remembered, what counts as an answer, bounds.

package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// teller is a resolver that tells what a test wants: by family; nil hangs.
type teller struct {
	lock  sync.Mutex
	four  func() ([]netip.Addr, error)
	six   func() ([]netip.Addr, error)
	asked int
}

func (t *teller) LookupNetIP(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	t.lock.Lock()
	t.asked++
	how := t.four
	if network == "ip6" {
		how = t.six
	}
	t.lock.Unlock()
	if how == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return how()
}

func (t *teller) set(four, six func() ([]netip.Addr, error)) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.four, t.six = four, six
}

func tells(list ...string) func() ([]netip.Addr, error) {
	return func() (all []netip.Addr, err error) {
		for _, s := range list {
			all = append(all, netip.MustParseAddr(s))
		}
		return all, nil
	}
}

func none() ([]netip.Addr, error) { return nil, &net.DNSError{Err: "no such host", IsNotFound: true} }

func other() ([]netip.Addr, error) { return nil, &net.AddrError{Err: "no suitable address"} }

func fails() ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
}

// dialler takes connections at some addresses.
type dialler struct {
	lock sync.Mutex
	up   map[string]bool
	seen []string
}

func (d *dialler) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.seen = append(d.seen, addr)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !d.up[addr] {
		return nil, fmt.Errorf("%s: refused", addr)
	}
	a, b := net.Pipe()
	_ = b.Close()
	return a, nil
}

func (d *dialler) set(up ...string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.up, d.seen = map[string]bool{}, nil
	for _, a := range up {
		d.up[a] = true
	}
}

func book(t *testing.T) (*Book, *teller, *dialler) {
	r, d := &teller{}, &dialler{}
	b := New(t.Context(), r)
	b.dial = d.dial
	return b, r, d
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A family with queries that are dropped holds up nobody, as little as one that fails, or has nothing (OPS-3).
func TestOneFamilyIsEnough(t *testing.T) {
	for name, six := range map[string]func() ([]netip.Addr, error){
		"dropped": nil, "failed": fails, "no such name": none, "other family in the file of hosts": other,
	} {
		b, r, d := book(t)
		d.set("10.0.0.1:7")
		r.set(tells("10.0.0.1"), six)
		nc, err := b.DialContext(within(t, time.Minute), "tcp", "n1.example:7")
		require.NoError(t, err, name)
		require.NoError(t, nc.Close())
		list, err := Addresses(within(t, time.Minute), r, "n1.example", time.Millisecond)
		require.NoError(t, err, name)
		require.Equal(t, []netip.Addr{netip.MustParseAddr("10.0.0.1")}, list)
	}
	b, r, d := book(t)
	d.set("[fd00::1]:7")
	late := make(chan struct{})
	r.set(tells("10.0.0.1"), func() ([]netip.Addr, error) {
		<-late
		return tells("fd00::1")()
	})
	b.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "10.0.0.1:7" {
			defer close(late)
		}
		return d.dial(ctx, network, addr)
	}
	nc, err := b.DialContext(within(t, time.Minute), "tcp", "n1.example:7")
	require.NoError(t, err, "the first family does not answer, the other one comes later")
	require.NoError(t, nc.Close())
}

// The address that stood last is dialled when the look-up fails, and when it does not end (OPS-3).
func TestRemembered(t *testing.T) {
	for name, how := range map[string]func() ([]netip.Addr, error){"fails": fails, "hangs": nil, "is gone": none} {
		b, r, d := book(t)
		r.set(tells("10.0.0.9", "10.0.0.1"), none)
		d.set("10.0.0.1:7")
		_, err := b.DialContext(within(t, time.Minute), "tcp", "n1.example:7")
		require.NoError(t, err)
		r.set(how, how)
		d.set("10.0.0.1:8")
		_, err = b.DialContext(within(t, time.Minute), "tcp", "n1.example:8")
		require.NoError(t, err, name)
		require.Equal(t, []string{"10.0.0.1:8"}, d.seen, "the one that stood, at any port")
	}
	b, r, d := book(t)
	r.set(tells("10.0.0.1"), none)
	d.set("10.0.0.1:7", "10.0.0.2:7")
	_, err := b.DialContext(within(t, time.Minute), "tcp", "n1.example:7")
	require.NoError(t, err)
	r.set(tells("10.0.0.2"), none)
	_, err = b.DialContext(within(t, time.Minute), "tcp", "n1.example:7")
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1:7", "10.0.0.2:7"}, d.seen, "what DNS says goes before what is remembered")
}

// An answer that comes after its asker has gone is there for the next one: a dead first server costs the system's
// resolver longer than any dial waits.
func TestLateAnswer(t *testing.T) {
	b, r, d := book(t)
	d.set("10.0.0.1:7")
	slow := make(chan struct{})
	r.set(func() ([]netip.Addr, error) {
		<-slow
		return tells("10.0.0.1")()
	}, none)
	_, err := b.DialContext(within(t, time.Millisecond), "tcp", "n1.example:7")
	require.True(t, Unasked(err), "%v", err)
	close(slow)
	require.Eventually(t, func() bool { return len(b.Known("n1.example")) == 1 }, time.Minute, time.Millisecond)
	r.set(nil, nil)
	nc, err := b.DialContext(within(t, time.Minute), "tcp", "n1.example:7")
	require.NoError(t, err)
	require.NoError(t, nc.Close())
	require.Equal(t, 2, r.asked)
}

// That there is no such name is an answer, that nobody could be asked is none, and one family that failed says that
// nothing is known (AVL-3).
func TestUnasked(t *testing.T) {
	for _, c := range []struct {
		name      string
		four, six func() ([]netip.Addr, error)
		unasked   bool
	}{
		{"no such name", none, none, false},
		{"no servers", fails, fails, true},
		{"one family", none, fails, true},
		{"the other", fails, none, true},
		{"nothing in time", nil, none, true},
		{"refused", tells("10.0.0.1"), none, false},
	} {
		b, r, d := book(t)
		d.set()
		r.set(c.four, c.six)
		_, err := b.DialContext(within(t, 20*time.Millisecond), "tcp", "n1.example:7")
		require.Error(t, err)
		require.Equal(t, c.unasked, Unasked(err), "%s: %v", c.name, err)
	}
	require.False(t, Unasked(errors.New("anything")))
}

// An address that was passed is dialled behind the others, and all in turn when each was (JOIN-1).
func TestPassed(t *testing.T) {
	b, r, d := book(t)
	b.Pass("nobody.example:7")
	b.Pass("10.0.0.1")
	r.set(tells("10.0.0.1", "10.0.0.2", "10.0.0.3"), none)
	dial := func() string {
		d.lock.Lock()
		d.seen = nil
		d.lock.Unlock()
		_, err := b.DialContext(within(t, time.Minute), "tcp", "all.example:7")
		require.NoError(t, err)
		d.lock.Lock()
		defer d.lock.Unlock()
		return d.seen[0]
	}
	d.set("10.0.0.1:7", "10.0.0.2:7", "10.0.0.3:7")
	require.Equal(t, "10.0.0.1:7", dial())
	require.Equal(t, "10.0.0.1:7", dial())
	for range 2 {
		for _, want := range []string{"10.0.0.2:7", "10.0.0.3:7", "10.0.0.1:7"} {
			b.Pass("all.example:7")
			require.Equal(t, want, dial())
			require.Equal(t, want, dial(), "the one that stood, as long as it is not passed")
		}
	}
	r.set(tells("10.0.0.1"), none)
	b.Pass("all.example:7")
	require.Equal(t, "10.0.0.1:7", dial(), "where there is no other one")
}

// A name that is not remembered any more costs a look-up, nothing else; an IP address costs none.
func TestBounds(t *testing.T) {
	b, r, d := book(t)
	d.set("10.0.0.1:7")
	r.set(tells("10.0.0.1"), none)
	_, err := b.DialContext(within(t, time.Minute), "tcp", "10.0.0.1:7")
	require.NoError(t, err)
	require.Zero(t, r.asked)
	for i := range MaxHosts + 10 {
		_, err := b.DialContext(within(t, time.Minute), "tcp", fmt.Sprintf("n%d.example:7", i))
		require.NoError(t, err)
	}
	require.Len(t, b.hosts, MaxHosts)
	require.NotContains(t, b.hosts, "n9.example")
	require.Contains(t, b.hosts, "n10.example")
	require.Eventually(t, func() bool {
		b.lock.Lock()
		defer b.lock.Unlock()
		return b.under == 0
	}, time.Minute, time.Millisecond)
	r.set(nil, nil)
	for i := range maxUnder + 1 {
		_, err = b.DialContext(within(t, time.Millisecond), "tcp", fmt.Sprintf("m%d.example:7", i))
		require.True(t, Unasked(err))
	}
	require.ErrorIs(t, err, ErrBusy)
}
