// Close: the order in which a transport ends, and the port that stays taken for a while.

package transport

import "time"

// Close stops accepting and dialling, flushes what connected peers take within CloseTimeout, and closes everything.
// Upcalls have ended, and no goroutine is left, when it returns. Later calls wait for the first.
func (t *Transport) Close() { t.CloseBut(nil) }

// CloseBut is Close, but keeps the port bound until last is closed, nil for at once: nobody is answered there any more,
// but whoever dials is not told by the host that no process has the port, either.
func (t *Transport) CloseBut(last <-chan struct{}) {
	t.closeOnce.Do(func() {
		t.mu.Lock()
		t.closing = true
		for nc := range t.admission.pending {
			_ = nc.SetDeadline(time.Unix(1, 0))
		}
		t.mu.Unlock()
		t.closeListener(last)
		t.flushAll(time.Now().Add(t.cfg.CloseTimeout))
		t.mu.Lock()
		t.ended = true
		t.mu.Unlock()
		t.cancel()
		t.tasks.Wait()
		t.killAll()
		t.ctl.Stop()
		for _, l := range t.loops {
			l.Stop()
		}
	})
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
