// The laws of the suite.

package queuetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/store"
)

// senders is how many send at once.
const senders = 4

// many makes all senders send to five receivers, through any of the nodes, and does something meanwhile.
func (s *suite) many(round int, nodes []*place, meanwhile func()) {
	kinds := []string{"plain", "plain", "plain", "plain", "refused", "panics", "poison"}
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			for k := range 25 {
				text, to := fmt.Sprintf("%s-%d-%d-%d", kinds[rng.IntN(len(kinds))], round, i, k), fmt.Sprint("r", rng.IntN(5))
				_ = s.sends(nodes[rng.IntN(len(nodes))], fmt.Sprint(i), to, text, 0) // what it says is noted
			}
		})
	}
	all.Go(meanwhile)
	all.Wait()
}

// moves: nodes come, leave and end while messages are sent and stored by a bad line. What was stored is handled or a
// dead letter, in order, and nothing else is.
func moves(s *suite) {
	st := s.opens()
	q := delivery.Queue{MaxTries: 4, RetryFirst: 5 * time.Millisecond, RetryMost: 20 * time.Millisecond,
		AckTime: 2 * time.Second}
	begins := func(others ...*place) *place {
		seed := uint64(len(others))
		return s.begins(&bad{Store: s.opens(), rand: rand.New(rand.NewPCG(seed, 35))}, q, others...)
	}
	first := begins()
	second := begins(first)
	third := begins(first, second)
	s.many(0, []*place{first, second, third}, func() {})
	s.many(1, []*place{first, second}, func() { require.NoError(s, third.Leave(s.ctx)) })
	fourth := begins(first, second)
	s.many(2, []*place{first, fourth, second}, func() { _ = second.Close() }) // it says what it abandons
	s.many(3, []*place{first, fourth}, func() {})
	s.settles(st)
	s.judges(first, st)
	digs(s, first)
	s.settles(st)
	s.judges(first, st)
}

// digs sends some of the dead letters again, and takes some away.
func digs(s *suite, p *place) {
	for i, l := range s.letters(p, delivery.MaxPage) {
		do, noted := p.queue.SendAgain, s.h.Again
		if i%2 == 0 {
			do, noted = p.queue.Discard, s.h.Discarded
		}
		s.mu.Lock()
		noted[label(l.Payload)] = true
		s.mu.Unlock()
		for err := do(s.ctx, l.Place); err != nil && !errors.Is(err, delivery.ErrNoLetter); {
			require.NoError(s, s.ctx.Err(), "%v", err)
			err = do(s.ctx, l.Place)
		}
	}
}

// survives: the engine ends as in a crash while messages wait and dead letters are kept. The next owner has them all.
func survives(s *suite) {
	p := s.begins(s.opens(), delivery.Queue{MaxTries: 1})
	for i := range 6 {
		require.NoError(s, s.sends(p, "s", fmt.Sprint("r", i%3), fmt.Sprint("poison-", i), 0))
	}
	s.settles(s.opens())
	_ = p.Close() // it may abandon deliveries, and says so

	s.refuses(true)
	p = s.begins(s.opens(), delivery.Queue{RetryFirst: time.Hour, RetryMost: time.Hour})
	for i := range 60 {
		require.NoError(s, s.sends(p, "s", fmt.Sprint("r", i%3), fmt.Sprint("plain-", i), 0))
	}
	_ = p.Close() // it may abandon deliveries, and says so
	if s.e.Again != nil {
		s.e.Again(s.T)
	}

	s.refuses(false)
	st := s.opens()
	waiting, dead := s.stored(st)
	require.Equal(s, [2]int{60, 6}, [2]int{waiting, dead})
	p = s.begins(st, delivery.Queue{MaxTries: 1})
	s.settles(st)
	s.judges(p, st)
	digs(s, p)
	s.settles(st)
	s.judges(p, st)
	_, dead = s.stored(st)
	require.Equal(s, 3, dead)
}

// largeMessages: commits of many messages, and messages of the largest size, come as they were sent; pages of dead
// letters carry them.
func largeMessages(s *suite) {
	st := s.opens()
	p := s.begins(st, delivery.Queue{MaxTries: 1, MaxBytes: 64 << 20})
	var all sync.WaitGroup
	for i := range 50 { // at once: their writes share commits
		all.Go(func() {
			for k := range 6 {
				if s.sends(p, fmt.Sprint(i), fmt.Sprint("r", i), fmt.Sprintf("plain-%d-%d", i, k), 100+3000*(i%3)) != nil {
					s.Error("a message was not stored")
				}
			}
		})
	}
	all.Wait()
	largest := func(text string) int { return delivery.MaxPayload - len(text) - 1 }
	for i := range 3 {
		for _, text := range []string{fmt.Sprint("plain-", i), fmt.Sprint("poison-", i)} {
			require.NoError(s, s.sends(p, "s", fmt.Sprint("r", i), text, largest(text)))
		}
	}
	s.settles(st)
	s.judges(p, st)
	letters := s.letters(p, delivery.MaxPage)
	require.Len(s, letters, 3)
	for _, l := range letters {
		require.Len(s, l.Payload, delivery.MaxPayload)
	}
}

var _ store.Store = &bad{}
