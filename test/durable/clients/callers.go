// Clients: each asks one entity after the other, any process, as behind a load balancer, and repeats what failed.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/gateway"
	"github.com/kith-io/kith/internal/cli"
)

const (
	entities    = 200                    // of each type
	askTimeout  = 10 * time.Second       // what a request says: the gateway's own
	ownPatience = 12 * time.Second       // of the client, who gives a connection up
	repeatAfter = 100 * time.Millisecond // behind a failure, whatever Retry-After says
	thinking    = 50 * time.Millisecond  // between two orders
)

// try is one request.
type try struct {
	at      time.Time
	took    time.Duration
	status  int // 0: no answer
	durable bool
	struck  bool // asked at a process to which something had happened
}

// errand is what a client wants done: it lasts until a request of it has succeeded.
type errand struct {
	at      time.Time
	took    time.Duration
	durable bool
	struck  bool // a request of it was at a struck process
}

// clients are all of them.
type clients struct {
	f      *cluster
	slow   time.Duration
	http   *http.Client
	cancel context.CancelFunc
	busy   sync.WaitGroup
	since  []atomic.Int64 // when the errand of each began, nanoseconds; zero: none
	number atomic.Int64

	mu      sync.Mutex
	tries   []try
	errands []errand
	added   [entities]int64 // to durable entities, as answered
}

func newClients(f *cluster, n int, slow time.Duration) *clients {
	c := &clients{f: f, slow: slow, since: make([]atomic.Int64, n), http: &http.Client{Timeout: ownPatience,
		Transport: &http.Transport{MaxIdleConnsPerHost: n}}}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for i := range n {
		c.busy.Go(func() { c.run(ctx, i) })
	}
	return c
}

// stop waits for what is under way.
func (c *clients) stop() {
	c.cancel()
	c.busy.Wait()
}

func (c *clients) run(ctx context.Context, i int) {
	for cli.Pause(ctx, rand.N(2*thinking)) {
		began := time.Now()
		c.since[i].Store(began.UnixNano())
		struck := c.do(i%2 == 1, rand.IntN(entities))
		c.since[i].Store(0)
		c.mu.Lock()
		c.errands = append(c.errands, errand{began, time.Since(began), i%2 == 1, struck})
		c.mu.Unlock()
	}
}

// do adds one to an entity: it asks until somebody answers.
func (c *clients) do(durable bool, id int) (struck bool) {
	key := fmt.Sprint("add ", c.number.Add(1))
	for {
		p := c.f.pick()
		t := try{at: time.Now(), durable: durable, struck: p.struck.Load()}
		t.status, _ = c.ask(p.door, durable, id, 1, key)
		t.took = time.Since(t.at)
		t.struck = t.struck || p.struck.Load()
		struck = struck || t.struck
		c.mu.Lock()
		c.tries = append(c.tries, t)
		if t.status == http.StatusOK && durable {
			c.added[id]++
		}
		c.mu.Unlock()
		if t.status == http.StatusOK {
			return struck
		}
		time.Sleep(repeatAfter)
	}
}

// ask makes one request.
func (c *clients) ask(door string, durable bool, id int, n int64, key string) (status int, value int64) {
	kind := plainType
	if durable {
		kind = accountType
	}
	body, _ := json.Marshal(number{n}) // it cannot fail
	url := fmt.Sprintf("http://%s/v1/ask/%s/%d", door, kind, id)
	q, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, 0
	}
	q.Header.Set("Kith-Timeout", askTimeout.String())
	if durable {
		q.Header.Set(gateway.KeyHeader, key)
	}
	a, err := c.http.Do(q)
	if err != nil {
		return 0, 0
	}
	defer a.Body.Close()
	reply, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, 0
	}
	var v number
	if a.StatusCode == http.StatusOK && json.Unmarshal(reply, &v) != nil {
		return 0, 0
	}
	return a.StatusCode, v.N
}

// calm reports whether no request since a time has failed, and none waits for so long that it is slow.
func (c *clients) calm(since time.Time) bool {
	for i := range c.since {
		if at := c.since[i].Load(); at != 0 && time.Since(time.Unix(0, at)) > c.slow {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.tries, func(t try) bool {
		return t.at.Add(t.took).After(since) && (t.status != http.StatusOK || t.took > c.slow)
	})
}

// lost returns how many additions are stored too few, or too often.
func (c *clients) lost(ctx context.Context) (n int64, err error) {
	for id, want := range c.added {
		for tries := 0; ; tries++ {
			status, has := c.ask(c.f.pick().door, true, id, 0, fmt.Sprint("read ", c.number.Add(1)))
			if status == http.StatusOK {
				n += max(has-want, want-has)
				break
			}
			if tries == 300 || !cli.Pause(ctx, repeatAfter) {
				return n, fmt.Errorf("account %d does not answer: %d", id, status)
			}
		}
	}
	return n, nil
}

// row is what clients saw of one type of entities in one event.
type row struct {
	Setting     string  `json:"setting"`
	Event       string  `json:"event"`
	Entities    string  `json:"entities"` // plain or account
	Seconds     float64 `json:"seconds"`  // from the event until nothing failed for a while
	Requests    int     `json:"requests"`
	OK          int     `json:"ok"`          // 200
	Unavailable int     `json:"unavailable"` // 503, with Retry-After
	Unknown     int     `json:"unknown"`     // 504
	Other       int     `json:"other"`       // another status
	NoAnswer    int     `json:"no_answer"`   // refused, reset, or given up after the client's own 12 s
	Slow        int     `json:"slow"`        // took longer than --slow
	// Longest is how long a client waited for what it wanted, its repetitions among it; LongestOthers the same of those
	// that asked no process that was struck.
	Longest       float64 `json:"longest_s"`
	LongestOthers float64 `json:"longest_others_s"`
}

// rows returns what was seen since a time.
func (c *clients) rows(event string, since time.Time) (list []row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, kind := range []string{plainType, accountType} {
		r := row{Event: event, Entities: kind, Seconds: time.Since(since).Seconds()}
		for _, t := range c.tries {
			if t.durable == (i == 1) && t.at.Add(t.took).After(since) {
				r.add(t, c.slow)
			}
		}
		for _, e := range c.errands {
			if e.durable != (i == 1) || !e.at.Add(e.took).After(since) {
				continue
			}
			r.Longest = max(r.Longest, e.took.Seconds())
			if !e.struck {
				r.LongestOthers = max(r.LongestOthers, e.took.Seconds())
			}
		}
		list = append(list, r)
	}
	return list
}

// add counts a request.
func (r *row) add(t try, slow time.Duration) {
	r.Requests++
	if t.took > slow {
		r.Slow++
	}
	switch t.status {
	case http.StatusOK:
		r.OK++
	case http.StatusServiceUnavailable:
		r.Unavailable++
	case http.StatusGatewayTimeout:
		r.Unknown++
	case 0:
		r.NoAnswer++
	default:
		r.Other++
	}
}
