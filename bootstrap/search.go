// Search: look-ups, probes and requests for promises, what the node gets of them, and what the log says.

package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/base/names"
	"github.com/kith-io/kith/peer"
)

// newClient returns the client by which contact points are asked. secure is nil without TLS.
func newClient(cfg Config, book *names.Book, secure func(host string) *tls.Config) *http.Client {
	t := &http.Transport{DialContext: book.DialContext, MaxIdleConnsPerHost: 1, MaxConnsPerHost: 2,
		IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		ResponseHeaderTimeout: cfg.ProbeTimeout}
	if secure != nil {
		t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return secured(ctx, book, network, addr, secure(host))
		}
	}
	return &http.Client{Transport: t, Timeout: cfg.ProbeTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// secured dials and makes the connection secure.
func secured(ctx context.Context, book *names.Book, network, addr string, cfg *tls.Config) (net.Conn, error) {
	nc, err := book.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := tls.Client(nc, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// run carries out what the machine wants until the search is over.
func (b *Bootstrap) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	log := told{log: b.log}
	for {
		work, e, wait := b.take()
		for i := range work {
			b.perform(&work[i])
		}
		log.tell(b.now(), e)
		if b.searchIsOver(e) {
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.wake:
		case <-b.Node().Done():
		case <-b.base.Done():
		}
	}
}

// searchIsOver ends the search when it is.
func (b *Bootstrap) searchIsOver(e formation.Explanation) bool {
	b.lock.Lock()
	b.member()
	joined := b.joined
	b.lock.Unlock()
	switch {
	case joined:
		b.log.Info("member of a cluster", "event", "bootstrap-joined", "cluster", hex(b.Node().View().ClusterID), "after",
			b.now().Round(time.Millisecond).String())
	case b.Node().Err() != nil:
		b.err = b.Node().Err()
	case b.base.Err() != nil:
		b.err = ErrClosed
	case b.cfg.Timeout > 0 && b.now() >= b.cfg.Timeout:
		b.err = &TimeoutError{b.cfg.Timeout, e}
		b.log.Error("no cluster was found in time: this node ends", "event", "bootstrap-timeout", "limit",
			b.cfg.Timeout.String(), "hold", e.Hold.String(), "why", e.Detail)
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		if err := b.Node().Shutdown(ctx, kith.ReasonJoinUnsuccessful); err != nil {
			_ = b.Node().Close()
		}
	default:
		return false
	}
	close(b.over)
	return true
}

// watch wakes the search when the membership changes, until the search is over.
func (b *Bootstrap) watch() {
	ctx, cancel := context.WithCancel(b.base)
	defer cancel()
	b.runs.Go(func() {
		defer cancel()
		select {
		case <-b.over:
		case <-b.base.Done():
		}
	})
	for range b.Node().Events(ctx) {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// perform does what the machine wants; what takes time has goroutines of its own. The machine has one look-up and one
// probe of each contact point under way, so these are bounded.
func (b *Bootstrap) perform(out *formation.Effects) {
	if out.LookUp {
		b.runs.Go(b.lookUp)
	}
	for _, at := range out.Probes {
		b.runs.Go(func() { b.probe(at) })
	}
	for _, a := range out.Asks {
		b.runs.Go(func() { b.ask(a) })
	}
	if j := out.Join; j != nil {
		b.join(j)
	}
}

// join tells the node what was decided.
func (b *Bootstrap) join(j *formation.Join) {
	list := make([]string, 0, len(j.Seeds))
	for _, a := range j.Seeds {
		list = append(list, a.String())
	}
	if j.Form {
		b.log.Info("this node forms the cluster", "event", "bootstrap-forms", "with", fmt.Sprint(list))
	} else {
		b.log.Info("a cluster was found", "event", "bootstrap-found", "seeds", fmt.Sprint(list))
	}
	ctx, cancel := context.WithTimeout(b.base, endTime)
	defer cancel()
	err := b.Node().UseSeeds(ctx, list)
	if err != nil && !errors.Is(err, kith.ErrJoined) && !errors.Is(err, kith.ErrSeedsOverridden) && b.Node().Err() == nil {
		b.log.Warn("the node does not take seeds", "seeds", fmt.Sprint(list), "error", err)
	}
}

// lookUp asks discovery. A method that does not return in time has failed; one that never returns is not asked again.
func (b *Bootstrap) lookUp() {
	ctx, cancel := context.WithTimeout(b.base, b.cfg.LookupTimeout)
	defer cancel()
	var targets []discovery.Target
	err := callback.ErrPanicked
	ended := true
	defer func() {
		if ended { // it has ended its goroutine
			b.step(func(now time.Duration) { b.machine.LookedUp(now, nil, clip(err.Error())) })
		}
	}()
	if why := b.callbacks.Call("Discovery.Lookup", func() { targets, err = b.cfg.Discovery.Lookup(ctx) }); why != nil {
		err = why
	}
	ended = false
	var points []peer.Addr
	if err == nil {
		points, err = b.points(targets)
	}
	failed := ""
	if err != nil {
		failed = clip(err.Error())
	}
	b.step(func(now time.Duration) { b.machine.LookedUp(now, points, failed) })
}

// points returns the contact points of targets; those without a port have that of this node's.
func (b *Bootstrap) points(targets []discovery.Target) (list []peer.Addr, err error) {
	if targets, err = discovery.Normalize(targets); err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.Port == 0 {
			t.Port = b.point.Port()
		}
		a, err := peer.ParseAddr(hostPort(t.Host, t.Port))
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// maxWhy bounds what is kept of an error.
const maxWhy = 300

func clip(s string) string {
	if len(s) > maxWhy {
		return s[:maxWhy] + "..."
	}
	return s
}

// probe asks a contact point what it knows.
func (b *Bootstrap) probe(at peer.Addr) {
	body, err := b.request(http.MethodGet, at, contactPath, nil)
	var reply formation.Reply
	if err == nil {
		reply, err = readContact(body)
	}
	failed := ""
	if err != nil {
		failed = clip(err.Error())
	} else if reply.ClusterID == 0 {
		b.connectAnew()
	}
	b.step(func(now time.Duration) { b.machine.Probed(now, at, reply, failed) })
}

// connectAnew makes the next requests go over new connections, once in a while: behind an address of several nodes,
// such as a service of Kubernetes, another one may show a cluster.
func (b *Bootstrap) connectAnew() {
	now := b.now()
	b.lock.Lock()
	due := now-b.anew >= anewTime
	if due {
		b.anew = now
	}
	b.lock.Unlock()
	if due {
		b.client.CloseIdleConnections()
	}
}

// ask asks a node for its promise. When that fails nothing is known, and the attempt comes to nothing.
func (b *Bootstrap) ask(a formation.AskTo) {
	text, err := json.Marshal(askToJSON(a.Ask))
	if err != nil { // no value of ours
		return
	}
	body, err := b.request(http.MethodPost, a.Point, promisePath, text)
	if err != nil {
		b.log.Debug("no answer to a request for a promise", "contact_point", a.Point.String(), "error", err)
		return
	}
	if answer, err := readAnswer(body); err == nil {
		b.step(func(now time.Duration) { b.machine.Answered(now, a.Point, answer) })
	}
}

// request sends one request and returns the body of its answer.
func (b *Bootstrap) request(method string, at peer.Addr, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.base, b.cfg.ProbeTimeout)
	defer cancel()
	select {
	case b.asking <- struct{}{}:
		defer func() { <-b.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	q, err := http.NewRequestWithContext(ctx, method, b.scheme+"://"+at.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Accept", contentType)
	if body != nil {
		q.Header.Set("Content-Type", contentType)
	}
	a, err := b.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(io.LimitReader(a.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	return text, unbelieved(a, text)
}

// told is the last log entry.
type told struct {
	log    *slog.Logger
	hold   formation.Hold
	failed bool
	any    bool
	at     time.Duration
}

// tell writes a line when what the search waits for has changed, and now and then when it has not.
func (t *told) tell(now time.Duration, e formation.Explanation) {
	if failed := e.LookupFailed != ""; failed != t.failed {
		t.failed = failed
		if failed {
			t.log.Warn("discovery fails: its last answer is kept", "event", "discovery-fails", "error", e.LookupFailed, "age",
				e.LookupAge.String())
		} else {
			t.log.Info("discovery answers again", "event", "discovery-answers")
		}
	}
	if e.Member || e.Action != formation.KeepLooking || t.any && e.Hold == t.hold && now-t.at < tellAgain {
		return
	}
	t.any, t.hold, t.at = true, e.Hold, now
	t.log.Info("in no cluster yet", "event", "bootstrap-waits", "hold", e.Hold.String(), "why", e.Detail, "contact_points",
		len(e.Points), "required", e.Required)
}
