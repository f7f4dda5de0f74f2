// The page docs/errors.md under test, and what errors say of execution, met over real sockets.

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
)

// Every exported error has a row, and no other; the word of a delivery error is what MayHaveRun says of it (ACC-2).
func TestErrorsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/errors.md")
	require.NoError(t, err)
	api, err := os.ReadFile("../../api.txt")
	require.NoError(t, err)
	var exported, listed []string
	for _, m := range regexp.MustCompile(`(?m)^kith: (?:var (Err\w+) error|type (\w+Error) =)`).FindAllStringSubmatch(
		string(api), -1) {
		exported = append(exported, m[1]+m[2])
	}
	require.Greater(t, len(exported), 50)
	said := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+Error|Err\\w+)` \\|(?: (no|yes|perhaps) \\|)?")
	for _, m := range rows.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
		said[m[1]] = m[2]
	}
	require.ElementsMatch(t, exported, listed)
	named := map[string]error{"ErrWouldBlock": kith.ErrWouldBlock, "ErrSettingsDiffer": kith.ErrSettingsDiffer}
	sources, err := os.ReadFile("../../errors.go")
	require.NoError(t, err)
	for why := route.OK + 1; why < route.Reason(route.Reasons); why++ {
		for _, m := range regexp.MustCompile(`(Err\w+) += route\.(Err\w+)`).FindAllStringSubmatch(string(sources), -1) {
			if name := strings.ReplaceAll(why.String(), "-", ""); strings.EqualFold("Err"+name, m[1]) {
				named[m[1]] = why.Err()
			}
		}
	}
	for name, why := range map[string]error{"ErrHandler": kith.ErrHandler, "ErrPanic": kith.ErrPanic,
		"ErrTimeout": kith.ErrTimeout} {
		named[name] = why
	}
	require.Len(t, named, route.Reasons-1+2, "each reason has its error")
	for name, why := range named {
		require.NotEmpty(t, said[name], name)
		require.Equal(t, said[name] != "no", kith.MayHaveRun(why), name)
	}
	require.True(t, kith.MayHaveRun(nil))
	require.True(t, kith.MayHaveRun(errors.New("somebody else's")))
}

// Asks end in every way over real sockets, and those with an error of which MayHaveRun is false were not handled: a
// retry by that word alone handles nothing twice (ACC-2).
func TestErrorsSayWhetherAHandlerRan(t *testing.T) {
	var ran atomic.Int64
	gate, blocked := make(chan struct{}), make(chan struct{}, 2)
	defer func() { close(gate) }()
	var regions []*kith.Region
	cluster(t, 2, func(i int, cfg *kith.Config) {
		cfg.MaxMessage, cfg.BulkBudget = 2<<20, 8<<20
		if i == 1 {
			cfg.Roles = []string{"host"}
		}
	}, func(_ int, node *kith.Node) {
		regions = append(regions, register(t, node, kith.EntityType{Name: "e", Role: "host", MailboxBytes: 4 << 10}, actor{
			receive: func(c *kith.Context, p []byte) error {
				ran.Add(1)
				switch string(p) {
				case "fail":
					return errors.New("out of stock")
				case "panic":
					panic("boom")
				case "silent":
					return nil
				case "large":
					require.ErrorIs(t, c.Reply(make([]byte, 3<<20)), kith.ErrTooLarge)
					return nil
				case "block":
					blocked <- struct{}{}
					<-gate
				}
				return c.Reply(nil)
			}}))
	})
	for i, r := range regions {
		require.NoError(t, func() error { _, err := r.Ask(within(t), "a", nil); return err }())
		full, busy, idle := string(make([]byte, 3<<10)), fmt.Sprint("busy", i), fmt.Sprint("idle", i)
		go func() { _, _ = r.AskWithin(patience, busy, []byte("block"), nil) }()
		select {
		case <-blocked:
		case <-within(t).Done():
			require.Fail(t, "its handler does not begin")
		}
		for _, c := range []struct {
			id, payload string
			want        error
			may         bool
		}{
			{"a", "fail", kith.ErrHandler, true},
			{"a", "panic", kith.ErrPanic, true},
			{"a", "silent", kith.ErrNoReply, true},
			{"a", "large", kith.ErrTooLarge, true},
			{"", "", kith.ErrBadID, false},
			{"a", string(make([]byte, 3<<20)), kith.ErrTooLarge, false},
			{idle, full + full, nil, true}, // not "a": its handler may not have returned though it has answered
		} {
			before := ran.Load()
			_, err := r.AskWithin(patience, c.id, []byte(c.payload), nil)
			require.ErrorIs(t, err, c.want, c.payload)
			require.Equal(t, c.may, kith.MayHaveRun(err), "%v", err)
			if !c.may {
				require.Equal(t, before, ran.Load())
			}
		}
		// A full mailbox refuses, and an ask that waits in it until nobody waits any more may have run.
		eventually(t, func() bool {
			_, err := r.AskWithin(20*time.Millisecond, busy, []byte(full), nil)
			if errors.Is(err, kith.ErrMailboxFull) {
				return !kith.MayHaveRun(err)
			}
			require.ErrorIs(t, err, kith.ErrTimeout)
			return false
		}, "the mailbox is full")
		require.False(t, kith.MayHaveRun(r.With(make([]byte, 5<<10)).Tell("a", nil)))
	}
}
