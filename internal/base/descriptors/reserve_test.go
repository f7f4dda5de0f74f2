// Tests of the reserve of descriptors over a process that is played: how many are held, given and taken back, and what
// is said of it (AVL-6).

package descriptors

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/logs/logstest"
)

// table plays the descriptors of a process.
type table struct {
	left int // that are free
	last int
	log  logstest.Text
	r    Reserve
}

func newTable(most, left int) *table {
	p := &table{left: left}
	p.r.log, p.r.most = slog.New(slog.NewTextHandler(&p.log, nil)), most
	p.r.hold = func() (int, error) {
		if p.left == 0 {
			return 0, &os.PathError{Op: "open", Path: os.DevNull, Err: syscall.EMFILE}
		}
		p.left--
		p.last++
		return p.last, nil
	}
	p.r.drop = func(int) { p.left++ }
	p.r.Refill()
	return p
}

// open is a call that takes a descriptor, as a dial does.
func (p *table) open() (net.Conn, error) {
	if p.left == 0 {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	}
	p.left--
	return nil, nil
}

func (p *table) dial() error {
	_, err := p.r.Dial(func(context.Context, string, string) (net.Conn, error) { return p.open() })(
		context.Background(), "tcp", "127.0.0.1:1")
	return err
}

const (
	saysUsed  = "no file descriptor is left"
	saysWhole = "the reserve for peers is whole"
)

// Each call for a peer that finds no descriptor gets one of the reserve, until that is empty; what becomes free goes
// back to it, and it is said once that it is used and once that it is whole (AVL-6).
func TestReserve(t *testing.T) {
	p := newTable(3, 5)
	require.Len(t, p.r.held, 3)
	for range 2 {
		require.NoError(t, p.dial())
	}
	require.Zero(t, p.log.Count(saysUsed))
	for range 3 {
		require.NoError(t, p.dial())
	}
	require.ErrorIs(t, p.dial(), syscall.EMFILE)
	require.Empty(t, p.r.held)
	require.Equal(t, 1, p.log.Count(saysUsed))

	p.left = 2
	p.r.Look()
	require.Len(t, p.r.held, 2)
	require.Zero(t, p.left)
	p.left = 1
	p.r.Look()
	p.r.needed = time.Now().Add(-calm)
	p.r.Look() // whole, but nothing is left for others
	require.Len(t, p.r.held, 3)
	require.Zero(t, p.log.Count(saysWhole))
	p.left = 1
	p.r.Look()
	require.Equal(t, 1, p.log.Count(saysWhole))
	require.Equal(t, 1, p.left)
	require.NoError(t, p.dial())
	require.NoError(t, p.dial())
	require.Equal(t, 2, p.log.Count(saysUsed))
	p.r.GiveAll()
	require.Equal(t, 2, p.left)
	p.r.Look()
	require.Equal(t, 2, p.left)
}

// Others of the process take what the reserve gives up: a call that finds nothing again and again ends, and leaves some
// to the next one (AVL-6).
func TestReserveIsNotEmptiedByOneCall(t *testing.T) {
	p, calls := newTable(10, 10), 0
	_, err := With(&p.r, func() (net.Conn, error) {
		calls++
		p.left = 0
		return p.open()
	})
	require.ErrorIs(t, err, syscall.EMFILE)
	require.Equal(t, 1+tries, calls)
	require.Len(t, p.r.held, 10-tries)
}

// What is lent for a while is not taken back meanwhile, and is afterwards; when none was left nothing is said (AVL-6).
func TestReserveLends(t *testing.T) {
	p := newTable(2, 2)
	broken := errors.New("broken")
	require.ErrorIs(t, p.r.Lend(func() error {
		p.r.Look()
		require.Equal(t, 1, p.left)
		require.NoError(t, p.r.Lend(func() error {
			require.Equal(t, 2, p.left)
			return nil
		}))
		require.Equal(t, 2, p.left)
		return broken
	}), broken)
	require.Len(t, p.r.held, 2)
	require.Zero(t, p.log.Count(saysUsed))
}

// Of a look-up that found no descriptor only the words are left (AVL-6).
func TestNoDescriptorInWords(t *testing.T) {
	require.True(t, None(&net.DNSError{Err: "dial udp 127.0.0.1:53: socket: " + syscall.EMFILE.Error()}))
	require.True(t, None(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ENFILE)}))
	require.False(t, None(&net.DNSError{Err: "no such host"}))
	require.False(t, None(nil))
}
