// Tests of the lock by which the next process proves this node dead (AVL-5, SHD-9).

package driver

import (
	"context"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/life"
	"github.com/kith-io/kith/route"
)

// Whatever call into user code has not returned when a node ends, nobody gets its lock before it has: else the next
// node at the address, which may be one of the same process, proved dead what still runs (SHD-9).
func TestLockIsHeldUntilTheLastCallReturns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has such a lock")
	}
	handler := func(receive, stop func()) func(string, route.Fence) entity.Handler {
		return func(string, route.Fence) entity.Handler { return &stubborn{receive, stop} }
	}
	cases := map[string]func(*entity.Type, func()){
		"hosted": func(typ *entity.Type, hang func()) {
			typ.Hosted = func(context.Context, route.ShardID, route.Fence) { hang() }
		},
		"remembered": func(typ *entity.Type, hang func()) {
			typ.Remembered = func(context.Context, route.ShardID, route.Fence) iter.Seq2[string, error] {
				return func(func(string, error) bool) { hang() }
			}
		},
	}
	for _, mode := range allModes {
		cases["told, "+mode.String()] = func(typ *entity.Type, hang func()) {
			typ.Mode, typ.New = mode, handler(hang, nil)
		}
		cases["asked, "+mode.String()] = cases["told, "+mode.String()]
		cases["stopped, "+mode.String()] = func(typ *entity.Type, hang func()) {
			typ.Mode, typ.New, typ.IdleAfter = mode, handler(func() {}, hang), time.Millisecond
		}
	}
	for name, hangs := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, free := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(free) })
			t.Cleanup(release)
			typ := entity.Type{Name: "x", Shards: 1, Mode: entity.Blocking, New: handler(func() {}, nil)}
			hangs(&typ, sync.OnceFunc(func() { close(running); <-free }))
			cfg := Config{Name: "x", Directory: t.TempDir(), Workers: 1, patience: 50 * time.Millisecond}
			d, err := Start(t.Context(), cfg.WithDefaults())
			require.NoError(t, err)
			r, err := d.Register(typ)
			require.NoError(t, err)
			require.NoError(t, d.Ready(t.Context()))
			ask := strings.HasPrefix(name, "asked")
			if ask {
				go func() { _, _ = r.AskWithin(time.Minute, "a", nil, nil) }() // which may call the handler itself
			} else {
				_ = r.Tell("a", nil) // only to some there is anything to tell
			}
			<-running
			_ = d.Close() // whether something was left behind is not what counts here

			addr := d.self.Addr.String()
			take := func() (dead uint64, err error) {
				l, dead, err := life.Take(life.Path(cfg.Directory, addr, cfg.Name), addr, 9)
				if l != nil {
					l.Release(false)
				}
				return dead, err
			}
			for range 20 {
				dead, err := take()
				require.Error(t, err, "it proves %x dead, of which a call runs", dead)
				time.Sleep(time.Millisecond)
			}
			release()
			eventually(t, func() bool { dead, err := take(); return err == nil && dead == d.self.Inc })
		})
	}
}
