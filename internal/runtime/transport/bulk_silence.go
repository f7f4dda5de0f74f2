// Silence of bulk connections: one on which nothing is acknowledged is given up as soon as the peer takes another.

package transport

import (
	"net"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/wire"
)

// heed looks whether the connection is silent. Then the peer is dialled, and what it answers takes its place. The sweep
// calls it.
func (b *Bulk) heed(now time.Time, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sock == nil || now.Before(b.silence.next) || b.s.Idle() {
		return
	}
	was := b.silence.on
	ask(b.sock, func(fd int) { b.silence.look(fd, now, late, b.t.cfg.silent) })
	if b.silence.on && !was {
		b.t.count.silences.Add(1)
		b.t.cfg.Logger.Warn("connection is silent: nothing that was sent is acknowledged; trying a new one", "peer", b.to,
			"lane", "bulk", "for", now.Sub(b.silence.since).Round(time.Millisecond))
	}
	if b.silence.on && !b.reviver {
		b.reviver = b.t.spawn(func() { b.revive(b.sock) })
	}
}

// ask calls f with the descriptor of a connection's socket, unless it is closed.
func ask(nc net.Conn, f func(fd int)) {
	nc = trust.Socket(nc)
	if sock, ok := nc.(syscall.Conn); ok {
		if raw, err := sock.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { f(int(fd)) })
		}
	}
}

// revive dials once, and gives up the silent connection for what it got unless that was heard meanwhile.
func (b *Bulk) revive(silent net.Conn) {
	spare, err := dialTwice(b.ctx, b.t, b.to.Addr, wire.LaneBulk)
	wait := time.Duration(0)
	if err == nil {
		wait = b.t.cfg.silentGrace
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
	}
	heard := false
	b.mu.Lock()
	b.reviver = false
	ask(silent, func(fd int) { heard = b.silence.ends(fd) })
	taken := err == nil && !heard && b.sock == silent && b.dead == nil && b.ctx.Err() == nil
	if taken {
		b.spare, b.why = spare, errSilent
	}
	b.mu.Unlock()
	switch {
	case taken:
		b.t.count.replaced.Add(1)
		_ = silent.Close()
	case err == nil:
		_ = spare.Close() // else the next look tries again
	}
}

// takeSpare returns what was dialled already, if anything was.
func (b *Bulk) takeSpare() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	spare := b.spare
	b.spare = nil
	return spare
}
