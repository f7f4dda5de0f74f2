// Room: how many calls are under way, and of which clients.

package gateway

import "sync"

// room bounds calls. A newcomer finds a place beside those that are there, however many of theirs they would like.
type room struct {
	most int

	mu            sync.Mutex
	under         int
	each          map[string]int // by client
	entered, busy uint64
}

// enter takes a place for somebody, which leave gives back. If there is none, all says whether none is left at all:
// else it is a matter of their share.
func (r *room) enter(who string) (leave func(), all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	others := len(r.each)
	if r.each[who] > 0 {
		others--
	}
	all = r.under >= r.most
	if all || r.each[who] >= max(1, r.most/(others+2)) {
		r.busy++
		return nil, all
	}
	r.under++
	r.entered++
	r.each[who]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.under--
		if r.each[who]--; r.each[who] == 0 {
			delete(r.each, who)
		}
	}, false
}
