// Tests of headers on real sockets: with every form of sending, to a known home and while one is looked for.

package e2e_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/wire"
)

// headersGot books with which headers messages came, by their names: the first eight bytes of each.
type headersGot struct {
	mu sync.Mutex
	by map[string][]string
}

func (g *headersGot) receive(c *kith.Context, p []byte) error {
	g.mu.Lock()
	name := string(p[:8])
	g.by[name] = append(g.by[name], string(c.Headers()))
	g.mu.Unlock()
	if c.Asked() {
		return c.Reply(c.Headers())
	}
	return nil
}

func (g *headersGot) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.by)
}

// sendAll sends a message to an entity by every form, with headers and without, and returns how many. Forms that wait
// are given goroutines of their own. Each message has a name, which is its headers, too.
func sendAll(t *testing.T, wg *sync.WaitGroup, r *kith.Region, round, id string) (sent int) {
	send := func(form string, size int, f func(r *kith.Region, payload []byte) ([]byte, error)) {
		for _, with := range []bool{true, false} {
			sent++
			name := fmt.Sprintf("%-6s%s%d", form, round, map[bool]int{true: 1}[with])
			headers := ""
			if with {
				headers = name
			}
			payload := append([]byte(name), make([]byte, size)...)
			to := r.With([]byte(headers))
			wg.Go(func() {
				reply, err := f(to, payload)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if reply != nil && string(reply) != headers {
					t.Errorf("%s has headers %q", name, reply)
				}
			})
		}
	}
	ctx := within(t)
	for i, size := range []int{0, 200 << 10} { // a large one fits no frame
		large := fmt.Sprint(i)
		send("tell"+large, size, func(r *kith.Region, p []byte) ([]byte, error) { return nil, r.Tell(id, p) })
		send("wait"+large, size, func(r *kith.Region, p []byte) ([]byte, error) { return nil, r.TellWait(ctx, id, p) })
		send("bulk"+large, size, func(r *kith.Region, p []byte) ([]byte, error) {
			return nil, r.TellBulk(ctx, id, p, nil)
		})
		send("ask"+large, size, func(r *kith.Region, p []byte) ([]byte, error) { return r.Ask(ctx, id, p) })
		send("with"+large, size, func(r *kith.Region, p []byte) ([]byte, error) {
			return r.AskWithin(patience, id, p, nil)
		})
	}
	return sent
}

// Headers arrive with every form of sending, large messages too, in every mode: with messages that were parked because
// nobody had registered their type yet, with those behind them, and from the node itself. A message without any has
// none. Pins SHD-5, API-2.
func TestHeadersOfEveryForm(t *testing.T) {
	t.Parallel()
	regions := map[kith.Mode]*kith.Region{}
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		if cfg.MaxPayload = 64 << 10; i == 1 {
			cfg.Roles = []string{"host"}
		}
	}, func(i int, n *kith.Node) {
		for _, m := range modes {
			if i == 0 {
				regions[m] = register(t, n, kith.EntityType{Name: m.String(), Mode: m, Role: "host"}, actor{})
			}
		}
	})
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			var wg sync.WaitGroup
			got := &headersGot{by: map[string][]string{}}
			sent := sendAll(t, &wg, regions[m], "p", "a")
			parked := func() int64 {
				for _, s := range nodes[0].Stats().Types {
					if s.Name == m.String() {
						return s.ParkedBytes
					}
				}
				return 0
			}
			all := int64(sent * wire.EnvelopeSize)
			eventually(t, func() bool { return parked() > all }, "all wait for a home")
			require.Zero(t, got.len())
			local := register(t, nodes[1], kith.EntityType{Name: m.String(), Mode: m, Role: "host"}, actor{receive: got.receive})
			wg.Wait()
			sent += sendAll(t, &wg, regions[m], "k", "a")
			sent += sendAll(t, &wg, local, "l", "b")
			wg.Wait()
			eventually(t, func() bool { return got.len() >= sent }, "%d messages come", sent)
			got.mu.Lock()
			defer got.mu.Unlock()
			require.Len(t, got.by, sent)
			for name, headers := range got.by {
				want := ""
				if name[7] == '1' {
					want = name
				}
				require.Equal(t, []string{want}, headers, name)
			}
		})
	}
}
