// Tests of the control loop that waits in Go's poller.

package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The control loops of transports park, hear of what comes then, take connections then, and end then.
func TestTransportsThatWaitInThePoller(t *testing.T) {
	runtimes, trs := []*rider{newRider(), newRider(), newRider()}, []*Transport{}
	for _, r := range runtimes[:2] {
		trs = append(trs, start(t, r, nil))
	}
	sends := func(from, to int) {
		require.NoError(t, trs[from].Send(peer.Mail{To: trs[to].Self(), Kind: wire.KindStatus, Body: make([]byte, 40)}))
		require.Equal(t, trs[from].Self(), want(t, runtimes[to].mails).from)
	}
	sends(0, 1)
	sends(1, 0)
	for _, tr := range trs {
		until(t, func() bool { return tr.Stats().Control.PollerWaits > 0 })
	}
	trs = append(trs, start(t, runtimes[2], nil))
	for i := range trs {
		sends(i, (i+2)%3)
		sends((i+2)%3, i)
	}
	for _, tr := range trs {
		tr.Close()
	}
}
