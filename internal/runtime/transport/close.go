// Close: the order in which a transport ends, and the port that stays taken for a while.

package transport

import (
	"time"

	"github.com/kith-io/kith/internal/runtime/loop"
)

// Close stops accepting and dialling, flushes what connected peers take within CloseTimeout, and closes everything.
// Upcalls have ended, and no goroutine is left, when it returns; but an upcall that does not return is left behind with
// its loop, after CloseTimeout. Later calls wait for the first.
func (t *Transport) Close() { t.CloseBut(nil) }

// CloseBut is Close, but keeps the port bound until last is closed, nil for at once: the port answers nobody any more,
// but the host does not refuse diallers as it would on a free port.
func (t *Transport) CloseBut(last <-chan struct{}) {
	t.closeOnce.Do(func() {
		t.mu.Lock()
		t.life.closing = true
		for nc := range t.admission.pending {
			_ = nc.SetDeadline(time.Unix(1, 0))
		}
		t.mu.Unlock()
		t.closeListener(last)
		flushCredit(t)
		t.flushAll(time.Now().Add(t.cfg.CloseTimeout))
		t.mu.Lock()
		t.life.ended = true
		t.mu.Unlock()
		t.cancel()
		await(t.cfg.CloseTimeout, t.tasks.Wait)
		t.killAll()
		stopLoops(t)
		t.reserve.GiveAll()
	})
}

// await waits for f, at most for patience.
func await(patience time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// stopLoops ends all loops side by side.
func stopLoops(t *Transport) {
	loops := append([]*loop.Loop{t.ctl}, t.loops...)
	ended := make(chan bool, len(loops))
	for _, l := range loops {
		go func() { ended <- l.StopWithin(t.cfg.CloseTimeout) }()
	}
	for range loops {
		if !<-ended {
			t.cfg.Logger.Error("an event loop does not return from what it was given to do: it is left behind")
		}
	}
}

// flushCredit sends the credit of what was consumed: a sender counts the rest as lost.
func flushCredit(t *Transport) {
	remotes, _ := t.snapshot(nil)
	for _, r := range remotes {
		for _, c := range t.dataFrom(nil, r.id) {
			c.flushCredit()
		}
	}
}

// SayTaken reports to Flights what was taken on the data connections that stand, as it is of those that are over: the
// runtime has ended, what still comes it leaves (InConn.Leave), and credit may be lost with its connection. A loop that
// does not return from an upcall within patience says nothing of its connections.
func SayTaken(t *Transport, patience time.Duration) {
	var conns []*InConn
	remotes, _ := t.snapshot(nil)
	for _, r := range remotes {
		conns = t.dataFrom(conns, r.id)
	}
	said, waits := make(chan struct{}, len(conns)), 0
	for _, c := range conns {
		if c.loop.Execute(&lastWord{c, said}) == nil {
			waits++
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for ; waits > 0; waits-- {
		select {
		case <-said:
		case <-timer.C:
			return
		}
	}
}

// lastWord says what was taken on a connection, on its loop: between two reads the count is right.
type lastWord struct {
	c    *InConn
	said chan<- struct{} // with room
}

// Run says it; of one that is over it has been said.
func (w *lastWord) Run(*loop.Loop) {
	if w.c.c != nil {
		w.c.tellTaken()
	}
	w.said <- struct{}{}
}

// closeListener ends the accepting, and gives the port back when last is closed.
func (t *Transport) closeListener(last <-chan struct{}) {
	ln, kept := t.listener.(interface{ SetDeadline(time.Time) error })
	if last == nil || !kept {
		_ = t.listener.Close()
		return
	}
	_ = ln.SetDeadline(time.Unix(1, 0))
	go func() {
		<-last
		_ = t.listener.Close()
	}()
}
