// Tests of parcels: pieces make a message again, shares are kept, what is not whole is dropped.

package parcels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func id(n int) peer.ID { return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)), Inc: 1} }

// pair is two offices, the first of which sends to the second.
type pair struct {
	from, to   *Office
	room       int // frames that the link takes
	err        error
	connection uint32
	invalid    int
}

func newPair() *pair {
	p := &pair{room: 1 << 30}
	p.to = New(Needs{Invalid: func(peer.ID, wire.Kind, error) { p.invalid++ }})
	p.from = New(Needs{Send: func(_ peer.ID, frame []byte) (bool, error) {
		if p.room == 0 {
			return true, nil
		}
		p.room--
		if p.err == nil {
			p.to.Take(id(1), p.connection, wire.Body(frame))
		}
		return false, p.err
	}})
	return p
}

func open(t *testing.T, o *Office, name string) *Service {
	s, err := o.Open(name, func() {})
	require.NoError(t, err)
	return s
}

func TestPieces(t *testing.T) {
	p := newPair()
	a, b := open(t, p.from, "a"), open(t, p.to, "a")
	open(t, p.to, "b")
	_, err := p.to.Open("b", func() {})
	require.ErrorIs(t, err, ErrName)
	long := bytes.Repeat([]byte("long"), 100_000)
	a.Send(id(2), long)
	a.Send(id(2), []byte("short"))
	open(t, p.from, "c").Send(id(2), []byte("nobody has this service"))
	p.room = 3
	require.Equal(t, again, p.from.turn())
	require.Empty(t, b.Letters())
	p.room = 1 << 30
	require.Equal(t, rest, p.from.turn())
	require.Equal(t, []Letter{{id(1), long}, {id(1), []byte("short")}}, b.Letters())
	require.Empty(t, p.from.out)
	require.Zero(t, p.from.Dropped()+p.to.Dropped())

	a.Send(id(2), long)
	p.room = 2
	p.from.turn()
	p.connection++ // what was begun is not continued on another connection
	p.room = 1 << 30
	p.from.turn()
	a.Send(id(2), []byte("next"))
	p.from.turn()
	require.Equal(t, []Letter{{id(1), []byte("next")}}, b.Letters())
	require.Positive(t, p.to.Dropped())
	p.to.Take(id(1), 0, []byte("nonsense"))
	require.Equal(t, 1, p.invalid)
	b.Close()
	a.Send(id(2), []byte("x"))
	p.from.turn()
	require.Empty(t, b.Letters())
}

// TestShares: a sender that says more than its share, or a receiver that takes nothing, costs no more than that.
func TestShares(t *testing.T) {
	p := newPair()
	a, b := open(t, p.from, "a"), open(t, p.to, "a")
	big := make([]byte, shareOut)
	a.Send(id(2), append(big, 1)) // alone it may be longer
	a.Send(id(2), []byte("dropped"))
	a.Send(id(3), []byte("another node has a share of its own"))
	require.EqualValues(t, 1, p.from.Dropped())
	a.Send(id(3), make([]byte, MaxMessage+1))
	require.EqualValues(t, 2, p.from.Dropped())
	p.from.turn()
	b.Letters()
	for range 4 {
		a.Send(id(2), big)
		p.from.turn()
	}
	require.Len(t, b.Letters(), shareIn/shareOut)
	require.Positive(t, p.to.Dropped())
	a.Send(id(2), []byte("room again"))
	p.from.turn()
	require.Len(t, b.Letters(), 1)

	p.err = errors.New("forgotten")
	a.Send(id(2), big)
	p.from.turn()
	require.Empty(t, p.from.out)
	p.err, p.room = nil, 1
	a.Send(id(2), big)
	p.from.turn()
	require.Len(t, b.whole, 1)
	b.Forget(func(peer.ID) bool { return false })
	require.Empty(t, b.whole)
}

func TestRun(t *testing.T) {
	p := newPair()
	ctx, end := context.WithCancel(t.Context())
	come := make(chan struct{}, 1)
	b, err := p.to.Open("a", func() { come <- struct{}{} })
	require.NoError(t, err)
	a := open(t, p.from, "a")
	var done sync.WaitGroup
	done.Go(func() { p.from.Run(ctx) })
	a.Send(id(2), []byte("x"))
	<-come
	require.Len(t, b.Letters(), 1)
	end()
	done.Wait()
	<-p.from.Over()
	_, err = p.from.Open("b", func() {})
	require.ErrorIs(t, err, ErrOver)
}
