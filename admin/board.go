// Board: what a dashboard shows of all its nodes, looked up once for all that watch.

package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	boardEvery = 500 * time.Millisecond // looks at the nodes, while somebody watches
	boardWaits = 400 * time.Millisecond // for their answers: later ones are shown the next time

	// A survey of a type costs a message to each member, and more for very many shards: of small clusters it is made each
	// second, of large ones at most as seldom as mostSurvey.
	leastSurvey = time.Second
	mostSurvey  = 30 * time.Second

	maxMoves   = 64   // of one type that are shown
	maxReports = 1024 // members with their share of a type shown
)

// source is a node that a board looks at. Both verbs end with their context.
type source interface {
	look(ctx context.Context) (*snapshot, error)
	report(ctx context.Context, typ string) (*report, error)
}

// named is a source with the name that the board's owner has given it, which stays when its node is another one.
type named struct {
	name string
	source
}

// boardState is the data of each event of GET /v1/watch.
type boardState struct {
	At    time.Time    `json:"at"` // on the clock of the node that serves it
	Nodes []*boardNode `json:"nodes"`
	Types []*boardType `json:"types"`
}

// boardNode is one node, as of its last answer.
type boardNode struct {
	Name     string    `json:"name,omitempty"`
	Age      float64   `json:"age_s"`           // of that answer; of a node that never answered, since it was first asked
	Error    string    `json:"error,omitempty"` // why there is no newer one
	Snapshot *snapshot `json:"snapshot,omitempty"`

	heard time.Time
	busy  bool
}

// boardType is where the shards of a type live, as one of the nodes heard from all members.
type boardType struct {
	Age    float64 `json:"age_s"`
	Asked  string  `json:"asked"`  // the node that asked the others
	Moving int     `json:"moving"` // shards on their way; Report.Moves has the first of them
	Report report  `json:"report"`

	at, next time.Time
	busy     bool
}

// board looks at its nodes while a page watches. All pages get the same bytes.
type board struct {
	nodes func() []named

	mu       sync.Mutex
	watchers int
	stop     context.CancelFunc
	known    map[string]*boardNode // by source name
	types    map[string]*boardType
	text     []byte        // the newest event, as it is written; never changed
	news     chan struct{} // closed when text is another one
}

func newBoard(nodes func() []named) *board {
	return &board{nodes: nodes, known: map[string]*boardNode{}, types: map[string]*boardType{},
		news: make(chan struct{})}
}

// enter counts a page that watches, and leave ends that. The first one has the board look, the last one has it stop.
func (b *board) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers++; b.watchers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		b.stop, b.text = cancel, nil
		go b.run(ctx)
	}
}

func (b *board) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers--; b.watchers == 0 {
		b.stop()
	}
}

// latest returns the newest event, nil before the first, and what is closed when there is a newer one.
func (b *board) latest() ([]byte, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text, b.news
}

func (b *board) run(ctx context.Context) {
	every := time.NewTicker(boardEvery)
	defer every.Stop()
	for ctx.Err() == nil {
		b.look(ctx)
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
}

// look asks all nodes that are not being asked, waits a while for them, and publishes what is known then.
func (b *board) look(ctx context.Context) {
	list := b.nodes()
	var asked sync.WaitGroup
	for _, n := range list {
		if b.begin(n.name) {
			asked.Go(func() {
				limited, cancel := context.WithTimeout(ctx, lookTime)
				defer cancel()
				s, err := n.look(limited)
				b.heard(ctx, n.name, s, err)
			})
		}
	}
	all := make(chan struct{})
	go func() { asked.Wait(); close(all) }()
	patience := time.NewTimer(boardWaits)
	defer patience.Stop()
	select {
	case <-all:
	case <-patience.C:
	}
	b.survey(ctx, list)
	b.publish(ctx, list)
}

// begin reports whether a node is to be asked now: it is not if its last answer is still awaited.
func (b *board) begin(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.known[name]
	if n == nil {
		n = &boardNode{Name: name, heard: time.Now()}
		b.known[name] = n
	}
	if n.busy {
		n.Error = "it has not answered yet"
		return false
	}
	n.busy = true
	return true
}

func (b *board) heard(ctx context.Context, name string, s *snapshot, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.known[name]
	n.busy = false
	switch {
	case err == nil:
		n.Snapshot, n.heard, n.Error = s, time.Now(), ""
	case ctx.Err() == nil: // else nobody watches any more
		n.Error = err.Error()
	}
}

// survey makes a node that answers ask the others about each type that is due.
func (b *board) survey(ctx context.Context, list []named) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, n := range list {
		k := b.known[n.name]
		if k == nil || k.Snapshot == nil || k.Error != "" || !joined(k.Snapshot) {
			continue
		}
		for _, t := range k.Snapshot.Types {
			o := b.types[t.Name]
			if o == nil {
				if len(b.types) >= maxTypes {
					continue
				}
				o = &boardType{at: now}
				b.types[t.Name] = o
			}
			if o.busy || now.Before(o.next) {
				continue
			}
			o.busy, o.next = true, now.Add(surveyEvery(k.Snapshot.Total, t.Shards))
			go b.ask(ctx, n, k.Snapshot.Members.Self, t.Name)
		}
	}
}

// surveyEvery is how long after a survey the next one of a type is made.
func surveyEvery(members int, shards uint32) time.Duration {
	return min(leastSurvey*time.Duration((1+members/50)*(1+int(shards/4096))), mostSurvey)
}

func (b *board) ask(ctx context.Context, n named, self, typ string) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	r, err := n.report(ctx, typ)
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.types[typ]
	o.busy = false
	if err != nil { // another node is asked the next time, if this one is silent
		return
	}
	o.at, o.Asked, o.Moving, o.Report = time.Now(), self, len(r.Moves), *r
	cut(&o.Report.Moves, maxMoves)
	cut(&o.Report.Nodes, maxReports)
	cut(&o.Report.Missing, maxReports)
}

// publish makes the event of now of what is known of these nodes, and forgets the others.
func (b *board) publish(ctx context.Context, list []named) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	state := boardState{At: now, Nodes: []*boardNode{}, Types: []*boardType{}}
	kept, typed := map[string]bool{}, map[string]bool{}
	for _, o := range list {
		n := b.known[o.name]
		n.Age, kept[o.name] = now.Sub(n.heard).Seconds(), true
		state.Nodes = append(state.Nodes, n)
		if n.Snapshot == nil {
			continue
		}
		for _, t := range n.Snapshot.Types {
			if o := b.types[t.Name]; o != nil && !typed[t.Name] && o.Asked != "" {
				typed[t.Name], o.Age = true, now.Sub(o.at).Seconds()
				state.Types = append(state.Types, o)
			}
		}
	}
	for name, n := range b.known { // in any order
		if !kept[name] && !n.busy {
			delete(b.known, name)
		}
	}
	data, err := json.Marshal(&state)
	if err != nil { // no value of ours
		return
	}
	b.text = fmt.Appendf(nil, "event: board\ndata: %s\n\n", data)
	close(b.news)
	b.news = make(chan struct{})
}

// joined reports whether a node says that it is one of a cluster.
func joined(s *snapshot) bool {
	return slices.Contains([]string{"ready", "waiting", "suspended", "leaving"}, s.Health.State.String())
}

// watch serves a stream of what the board shows: each event replaces the one before it, so a slow reader gets fewer.
func (b *board) watch(w http.ResponseWriter, q *http.Request, streams *places) {
	ctx, free, ok := streams.take(w, q)
	if !ok {
		return
	}
	defer free()
	b.enter()
	defer b.leave()
	out := begin(w)
	for {
		text, news := b.latest()
		if text != nil && !streams.put(out, w, text) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
	}
}
