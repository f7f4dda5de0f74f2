// Tests of the reserve of descriptors, in a process of its own that has none left (AVL-6).

//go:build unix

package transport

import (
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/base/descriptors"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// alone runs a test in a process of its own and reports whether this is that one.
func alone(t *testing.T) bool {
	const mark = "KITH_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return false
}

// limitDescriptors gives this process a limit of descriptors.
func limitDescriptors(t *testing.T, most uint64) {
	var r unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &r))
	r.Cur = most
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &r))
}

// takeAll takes all descriptors that are left, and returns what gives them back.
func takeAll(t *testing.T) (giveBack func()) {
	var taken []int
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			require.ErrorIs(t, err, unix.EMFILE)
			require.NotEmpty(t, taken)
			break
		}
		taken = append(taken, fd)
	}
	return sync.OnceFunc(func() {
		for _, fd := range taken {
			_ = unix.Close(fd)
		}
	})
}

// A process that has no descriptor left dials a peer, and takes the peer's connections, by those that its transport
// holds in reserve; when there are some again the reserve is whole (AVL-6).
func TestNoDescriptorLeft(t *testing.T) {
	if !alone(t) {
		return
	}
	limitDescriptors(t, 256)
	ra, rb := newRider(), newRider()
	soon := func(c *Config) { c.CreditEvery = time.Millisecond }
	ta, tb := start(t, ra, soon), start(t, rb, soon)
	giveBack := takeAll(t)
	defer giveBack()
	require.NoError(t, send(t, ta.Link(tb.Self()), 1, 1, 64, nil))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	require.NoError(t, tb.Send(peer.Mail{To: ta.Self(), Kind: wire.KindStatus}))
	require.Equal(t, ta.Self(), wantMail(t, rb, wire.KindStatus).from)
	require.Equal(t, tb.Self(), wantMail(t, ra, wire.KindStatus).from)
	require.Equal(t, tb.Self(), want(t, ra.ups).id)
	require.Less(t, ta.reserve.Held()+tb.reserve.Held(), 2*descriptors.Most)
	giveBack()
	until(t, func() bool { return ta.reserve.Held() == descriptors.Most && tb.reserve.Held() == descriptors.Most })
}

// Strangers get half of the reserve at most, and the one that has been silent for the longest time goes for a peer,
// which is let in while they wait (AVL-6, SEC-1).
func TestStrangersDoNotTakeTheReserve(t *testing.T) {
	if !alone(t) {
		return
	}
	limitDescriptors(t, 256)
	ra, rb := newRider(), newRider()
	ta := start(t, ra, nil)
	tb := start(t, rb, func(c *Config) {
		c.FirstByteTimeout, c.HelloTimeout = time.Hour, time.Hour
		c.CreditEvery = time.Millisecond
	})
	to, ok := tb.listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	at := &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	strangers := make([]int, descriptors.Most+8)
	for i := range strangers {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		defer unix.Close(fd)
		strangers[i] = fd
	}
	defer takeAll(t)()
	for _, fd := range strangers {
		require.NoError(t, unix.Connect(fd, at))
	}
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	require.Equal(t, ta.Self(), wantMail(t, rb, wire.KindStatus).from)
	until(t, func() bool { return tb.reserve.Held() >= descriptors.Most/2 })
	s := tb.Stats()
	require.NotZero(t, s.PutOut)
	require.Equal(t, s.PutOut, s.OverLimit)
}
