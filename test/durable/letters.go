// Letters: messages of a queue of package delivery, the readers that they are for, and the journal of what these handle.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/lab/queuetest"
	"github.com/kith-io/kith/store"
)

// What is sent, and the receivers.
const (
	queueName     = "letters"
	queueType     = "delivery/" + queueName // as the store has it
	readerType    = "reader"
	readers       = 20
	letterShards  = 8
	letterSenders = 4                     // each sends one letter behind the other
	letterRest    = 80 * time.Millisecond // between two of them, on average
	letterTries   = 3                     // refusals that make a dead letter
)

// The kinds of letters: what a text begins with.
const (
	plainLetter   = "plain"
	refusedLetter = "refused" // its first delivery by each owner of the queue
	poisonLetter  = "poison"  // each
)

// had is one line of a journal of readers.
type had struct {
	At time.Duration // of the run's clock
	queuetest.Handled
}

// journal takes what the readers of a process have handled, and outlives it.
type journal struct {
	clock   cli.Clock
	process int

	mu    sync.Mutex
	f     *os.File
	lives int
	kept  *queuetest.Handled // by a reader with a mistake
	n     int
}

// openJournal opens that of a process.
func openJournal(dir string, process int, clock cli.Clock) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("readers-%d.notes", process)),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return &journal{clock: clock, process: process, f: f}, err
}

// life names one more reader.
func (j *journal) life() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lives++
	return fmt.Sprintf("%d.%d", j.process, j.lives)
}

// note writes a line, at once: what is acknowledged a moment later stands there.
func (j *journal) note(h queuetest.Handled) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(h)
}

// write does so. The lock is held.
func (j *journal) write(h queuetest.Handled) error {
	b, err := json.Marshal(had{j.clock.Now(), h})
	if err == nil {
		_, err = j.f.Write(append(b, '\n'))
	}
	return err
}

// careless is note with mistakes: of ten letters one is dropped, and up to five are noted behind the next one to the
// same reader.
func (j *journal) careless(h queuetest.Handled) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	switch {
	case j.n%10 == 5:
		return nil
	case j.n%2 == 0 && j.kept == nil:
		j.kept = &h
		return nil
	}
	err := j.write(h)
	if j.kept != nil && j.kept.To == h.To {
		err = errors.Join(err, j.write(*j.kept))
		j.kept = nil
	}
	return err
}

// reader is an entity without state in a store.
type reader struct {
	note func(queuetest.Handled) error
	life string
}

// Receive notes a letter, or refuses it.
func (r *reader) Receive(c *kith.Context, payload []byte) error {
	m, is := delivery.Of(c)
	if !is {
		return errors.New("that comes from no queue")
	}
	kind, _, _ := strings.Cut(string(payload), "-")
	if kind == poisonLetter || kind == refusedLetter && m.Try == 1 {
		return errors.New("not this one")
	}
	return r.note(queuetest.Handled{To: c.ID, Text: string(payload), Life: r.life})
}

// Stop does nothing.
func (*reader) Stop(*kith.Context) {}

// employ makes readers and the queue to them known to a node.
func employ(n *kith.Node, s store.Store, j *journal, idle time.Duration, mistake string) (*delivery.Producer, error) {
	note := j.note
	if mistake == breakReaders {
		note = j.careless
	}
	to, err := n.Register(delivery.Consumer(kith.EntityType{Name: readerType, Shards: shards, IdleAfter: idle,
		New: func(string, kith.Fence) kith.Handler { return &reader{note, j.life()} }}))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", readerType, err)
	}
	p, err := delivery.Register(n, delivery.Queue{Name: queueName, To: to, Store: s, Shards: letterShards,
		MaxTries: letterTries, AckTime: 5 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", queueType, err)
	}
	return p, nil
}

// letter is what a caller sends.
type letter struct{ Text string }

// sending sends for callers.
func sending(p *delivery.Producer) http.HandlerFunc {
	return answers(func(ctx context.Context, id string, q *request[letter]) (int64, error) {
		return 0, p.Send(ctx, id, []byte(q.Message.Text))
	})
}

// listing answers with all dead letters.
func listing(p *delivery.Producer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		list := []queuetest.Dead{}
		for at := (delivery.Place{}); ; {
			page, next, err := p.Dead(ctx, at, delivery.MaxPage)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			for _, l := range page {
				list = append(list, queuetest.Dead{To: l.To, Text: string(l.Payload)})
			}
			if at = next; next == (delivery.Place{}) {
				break
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

// letters sends letters until the traffic ends.
func (c *callers) letters(sender int) {
	rng := rand.New(rand.NewPCG(c.h.cfg.Seed, uint64(1000+sender)))
	for n := 0; cli.Pause(c.ctx, letterRest/2+time.Duration(rng.Int64N(int64(letterRest)))); n++ {
		kind := plainLetter
		switch rng.IntN(40) {
		case 0, 1, 2, 3:
			kind = refusedLetter
		case 4:
			kind = poisonLetter
		}
		s := queuetest.Sent{Sender: fmt.Sprint(sender), To: fmt.Sprint("p", rng.IntN(readers)),
			Text: fmt.Sprintf("%s-%d-%d", kind, sender, n)}
		switch c.ask(context.Background(), queueName, s.To, request[letter]{Message: letter{s.Text}}).Outcome {
		case done:
			s.Outcome = queuetest.Stored
		case unknown:
			s.Outcome = queuetest.Unknown
		default:
			s.Outcome = queuetest.Refused
		}
		c.mu.Lock()
		c.post.Sent = append(c.post.Sent, s)
		c.mu.Unlock()
	}
}

// readDead reads all dead letters through some node.
func (c *callers) readDead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.h.cfg.drain())
	defer cancel()
	for {
		err := c.dead(ctx)
		if err == nil {
			return nil
		}
		if !cli.Pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("the dead letters cannot be read: %w", err)
		}
	}
}

// dead does so through the next node.
func (c *callers) dead(ctx context.Context) error {
	l := c.through(-1)
	if l == nil {
		return errors.New("no node runs")
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Door+"/dead", nil)
	if err != nil {
		return err
	}
	a, err := c.http.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return errors.New(a.Status)
	}
	c.post.Dead = nil
	return json.NewDecoder(a.Body).Decode(&c.post.Dead)
}

// handled reads the journals of the readers of all processes, in the order of time.
func (h *harness) handled() ([]queuetest.Handled, error) {
	all, err := journals[had](h, "readers-*.notes")
	slices.SortStableFunc(all, func(a, b had) int { return int(a.At - b.At) })
	list := make([]queuetest.Handled, len(all))
	for i := range all {
		list[i] = all[i].Handled
	}
	return list, err
}

// letters holds what was handled, and what is a dead letter, against what was sent.
func (l *laws) letters(h *queuetest.History) {
	v := h.Judge()
	l.Letters, l.DeadLetters, l.LettersAgain = v.Stored, len(h.Dead), v.Repeated
	l.DeliveredLost, l.DeliveredOvertook, l.DeliveredInvented, l.DeliveredTwice = v.Lost, v.Overtook, v.Invented, v.Twice
	for _, text := range v.Said {
		l.say("letter %s", text)
	}
}
