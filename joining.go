// Joining: seeds that are found after the start, going over to another cluster, and coming back to one.

package kith

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/kith-io/kith/internal/runtime/driver"
)

// DefaultName is the name of a cluster when Config gives none.
const DefaultName = driver.DefaultName

// UseSeeds gives seeds, host:port, to a node that is in no cluster, in the meaning of Config.Seeds: the first that
// answers admits it, and when this node's own address heads the list it forms the cluster if no other is in one. Later
// calls add seeds in front of the earlier ones. Errors: ErrJoined, ErrSeedsOverridden when JoinCluster has given it
// others, a seed that is no address, more than 256 of them, and the *EndedError of a node that has ended.
func (n *Node) UseSeeds(ctx context.Context, seeds []string) error {
	return driver.UseSeeds(ctx, n.d, seeds, false)
}

// Told returns the seeds that JoinCluster gave this node, the latest ones; nil: none. Whatever else looks for seeds can
// stop. The slice is the caller's.
func (n *Node) Told() []string { return driver.Told(n.d) }

// LastCluster returns the id of the cluster that this node's Directory remembered when it started, zero for none.
func (n *Node) LastCluster() uint64 { return driver.LastCluster(n.d) }

// TLSConfigs returns configurations for further connections, with nodes of this cluster as both ends: for a server, and
// for a client of a server at a host. They follow Config.TLS, also when certificates are replaced, and ask both ends
// for one. Without TLS both are nil.
func (n *Node) TLSConfigs() (server *tls.Config, client func(host string) *tls.Config) {
	return driver.TLSConfigs(n.d)
}

// take waits for the turn to make the next node.
func (s *succession) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *succession) release() { <-s.turn }

// wait waits until the next one may come.
func (s *succession) wait(ctx context.Context) error {
	if s.pause == 0 || time.Since(s.began) >= RejoinMost {
		s.pause = RejoinLeast
	}
	timer := time.NewTimer(s.pause - rand.N(s.pause/2))
	defer timer.Stop()
	s.pause, s.began = min(2*s.pause, RejoinMost), time.Now()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts the node that follows the one of d.
func (s *succession) start(ctx context.Context, d *driver.Driver, cfg Config, why driver.Succession) (*Node, error) {
	next, err := driver.Succeed(ctx, d, cfg.driver(), why)
	if err != nil {
		return nil, err
	}
	s.next = &Node{next, cfg, succession{turn: make(chan struct{}, 1), began: time.Now(), pause: s.pause}}
	return s.next, nil
}

// at returns c for a next incarnation, which has the address of the one of d and forms no cluster because that one was
// once ordered to.
func (c Config) at(d *driver.Driver) Config {
	c.FormNew = false
	if host, port, err := net.SplitHostPort(d.Config().Listen); err == nil && port == "0" {
		c.Listen = net.JoinHostPort(host, strconv.Itoa(int(d.Self().Addr.Port())))
	}
	return c
}

// over returns c for a next incarnation that goes over to the cluster of the seeds, or the faults of that. Stores may
// have seen fences of the cluster of d, so a node with types goes to no cluster that was born earlier.
func (c Config) over(d *driver.Driver, seeds []string) (Config, error) {
	c = c.at(d)
	c.AwaitSeeds = false
	c.Seeds, c.MinBirth = seeds, max(c.MinBirth, d.Issued())
	return c, c.Validate()
}

// JoinCluster moves a node that is alone in its cluster to the cluster of the seeds (host:port). What it hosts is
// stopped, its incarnation ends, and a new one starts on the same address and joins. The new one is returned: register
// its types and use it instead of n. Clusters go over node by node; they are never merged. In a cluster with other
// members nothing happens (ErrNotAlone). The shutdown of n runs with all its phases (ReasonRejoin). If a type was
// registered on n, fences may have been issued under its cluster's birth, and the new node refuses a cluster that was
// born earlier: stores would not take its writes.
//
// A node that is in no cluster yet needs no new incarnation: n itself is returned, and joins through these seeds in
// place of all that it was given before or is given later by UseSeeds (ErrSeedsOverridden). ErrJoinPending: it has
// asked a member to admit it; call again later.
//
// For a node that has ended as the younger of two clusters (EndDuplicate) JoinCluster starts the next incarnation, with
// the seeds that its EndedError names or with others: it joins the older cluster, whatever fences were issued under the
// younger.
//
// Called again it returns the same node, also after Rejoin; when ctx has ended or the next node could not be started,
// it goes on.
func (n *Node) JoinCluster(ctx context.Context, seeds []string) (*Node, error) {
	cfg, err := n.cfg.over(n.d, seeds)
	if err == nil {
		err = n.over.take(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer n.over.release()
	if n.over.next != nil {
		return n.over.next, nil
	}
	switch err := n.d.JoinAnother(ctx); {
	case endedAs(err, EndRejoin): // by an earlier call, which did not come to the end
		<-n.Done()
	case yielded(err):
		cfg.MinBirth = n.cfg.MinBirth // as after a restart: a node that yields goes back to the older one
		<-n.Done()
	case errors.Is(err, ErrNotMember) && len(seeds) > 0:
		if err := driver.UseSeeds(ctx, n.d, seeds, true); err != nil {
			return nil, err
		}
		return n, nil
	case err != nil:
		return nil, err
	}
	return n.over.start(ctx, n.d, cfg, driver.JoinsAnother)
}

// LeaveAndJoin has a node that is in company leave its cluster, as Leave does, and join that of the seeds (host:port)
// under a new incarnation at its address, which is returned: register its types and use it instead of n. Two clusters
// become one node by node; they are never merged. What the node hosted moves to the members that stay. The last one to
// go has nobody to move it to: its entities stop, and their states are lost unless a store has them. What JoinCluster
// says of fences goes for this too: a node with types refuses a cluster that was born earlier.
//
// The *EndedError of a node that did not leave is returned, and ctx's error when it ends first; the leave then goes on,
// and a later call goes over. What the leave has lost or abandoned, another call of Leave says. ErrNotMember: n is in
// no cluster; JoinCluster needs no more than that.
func (n *Node) LeaveAndJoin(ctx context.Context, seeds []string) (*Node, error) {
	cfg, err := n.cfg.over(n.d, seeds)
	if len(seeds) == 0 {
		err = errors.Join(err, fmt.Errorf("%w: Seeds: those of the other cluster are needed", ErrBadConfig))
	}
	if err == nil {
		err = n.over.take(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer n.over.release()
	if n.over.next != nil {
		return n.over.next, nil
	}
	if _, ok := n.View().SelfMember(); !ok && n.Err() == nil {
		return nil, fmt.Errorf("kith: leave and join: %w", ErrNotMember)
	}
	if err := n.Shutdown(ctx, ReasonRejoin); n.Err() == nil {
		return nil, err
	}
	<-n.Done()
	if e := endedError(n.Err()); e.Kind != EndLeft {
		return nil, e
	}
	return n.over.start(ctx, n.d, cfg, driver.LeftToJoin)
}

// ErrNoRejoin is wrapped by the error of Rejoin on a node that ended because somebody wanted it to: it has left,
// was closed, or was refused for good.
var ErrNoRejoin = errors.New("kith: a node that ended so does not come back")

// Rejoin starts the next incarnation of a node that the cluster has ended: one that was marked down, removed, cut off,
// or not admitted in time (EndDowned, EndRemoved, EndIsolated, EndJoinTimeout), or that yields to an older cluster of
// its name (EndDuplicate). The new one has the address and the configuration of n, asks the members that n knew beside
// its seeds, and forms no cluster while one of them may carry the old one on, with Config.Directory or without. It need
// not be Up when it is returned: register the types on it, and use it instead of n. Nothing that lived on n lives on
// it, and each of n's regions goes on returning ErrStopped.
//
// Rejoin waits until n has ended and its shutdown has run, and then for a pause (RejoinLeast). Called again it returns
// the same node. Errors: one that matches ErrNoRejoin and holds the *EndedError of n; those of Start, after which it
// may be called again; ctx's.
func Rejoin(ctx context.Context, n *Node) (*Node, error) {
	select {
	case <-n.Done():
	case <-ctx.Done():
		return nil, fmt.Errorf("kith: rejoin: %w", ctx.Err())
	}
	if err := n.over.take(ctx); err != nil {
		return nil, fmt.Errorf("kith: rejoin: %w", err)
	}
	defer n.over.release()
	if n.over.next != nil {
		return n.over.next, nil
	}
	e := n.d.Err()
	if !comesBack(e) {
		return nil, fmt.Errorf("%w: %w", ErrNoRejoin, e)
	}
	select {
	case <-n.ShutdownDone():
	case <-ctx.Done():
	}
	if err := n.over.wait(ctx); err != nil {
		return nil, fmt.Errorf("kith: rejoin: %w", err)
	}
	cfg := n.cfg.at(n.d)
	if told := n.Told(); told != nil {
		cfg.Seeds, cfg.AwaitSeeds = told, false
	}
	if yielded(e) {
		cfg.Seeds, cfg.AwaitSeeds = endedError(e).Seeds, false
	}
	return n.over.start(ctx, n.d, cfg, driver.ReturnsToJoin)
}

// endedError returns the EndedError of a node, nil when err is none.
func endedError(err error) *EndedError {
	var e *EndedError
	_ = errors.As(err, &e)
	return e
}

// yielded reports whether err is that of a node that has ended as the younger of two clusters.
func yielded(err error) bool { return endedAs(err, EndDuplicate) }

// endedAs reports whether err is that of a node that has ended so.
func endedAs(err error, kind EndKind) bool {
	e := endedError(err)
	return e != nil && e.Kind == kind
}

// comesBack reports whether err is that of a node that may try again: nobody in its process wanted its end.
func comesBack(err error) bool {
	e := endedError(err)
	if e == nil {
		return false
	}
	switch e.Kind {
	case EndDowned, EndRemoved, EndIsolated, EndJoinTimeout:
		return true
	case EndDuplicate:
		return len(e.Seeds) > 0
	}
	return false
}

// The pause before a node comes back: RejoinLeast at first, twice as long each time, up to RejoinMost, and RejoinLeast
// again after a node that lived for RejoinMost. Each is shorter by a random part, a half at most, so that nodes which
// ended together do not come back together.
const (
	RejoinLeast = time.Second
	RejoinMost  = 30 * time.Second
)

// Supervise keeps this process a member until ctx ends: when the cluster has ended its node n, it starts the next one.
// Rejoin says which ends those are, and what the next node knows. One that follows by JoinCluster or LeaveAndJoin
// is supervised as well.
//
// life is called for each node, n first, on a goroutine of its own. It registers the types, and may return then, or
// serve until its context ends: when its node has ended, or ctx has. The next node starts when it has returned. An
// error of life closes the node, and Supervise returns it; why its node has ended is none, nor is context.Canceled once
// its context has ended.
//
// When ctx ends, the node leaves (ReasonSignal), and Supervise returns what Node.Shutdown returned: nil when nothing
// was lost. It also returns when a node ended because somebody wanted it to: nil when it left, else an error that
// matches ErrNoRejoin. A node that cannot be started is tried again, and the log says why.
func Supervise(ctx context.Context, n *Node, life func(ctx context.Context, n *Node) error) error {
	s := supervised{n, life}
	for s.node != nil {
		if err := s.live(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// supervised is a process that is kept a member.
type supervised struct {
	node *Node
	life func(ctx context.Context, n *Node) error
}

// live runs life beside the node until both are over.
func (s *supervised) live(ctx context.Context) error {
	defer s.node.Close()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		err := s.life(serving, s.node)
		switch end := s.node.Err(); {
		case end != nil && errors.Is(err, end), serving.Err() != nil && errors.Is(err, context.Canceled):
			err = nil
		}
		if err != nil {
			stop()
		}
		served <- err
	}()
	select {
	case <-s.node.Done():
	case <-serving.Done():
	}
	var left error
	if ctx.Err() != nil && s.node.Err() == nil {
		left = s.node.Shutdown(context.Background(), ReasonSignal)
	}
	stop()
	return errors.Join(<-served, left)
}

// follow has the next node in the place of the one that has ended; none when that has left and goes over to no other
// cluster, or ctx has ended.
func (s *supervised) follow(ctx context.Context) error {
	n := s.node
	s.node = nil
	for s.node == nil && ctx.Err() == nil {
		next, err := Rejoin(ctx, n)
		switch {
		case err == nil:
			s.node = next
		case errors.Is(err, ErrNoRejoin):
			if endedError(err).Kind == EndLeft {
				return nil
			}
			return err
		}
	}
	return nil
}
