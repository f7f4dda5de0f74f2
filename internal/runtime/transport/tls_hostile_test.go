// Tests of strangers at a TLS port: slow ones, silent ones in great number, and those that send too much. Each costs
// bounded bytes, time and descriptors, and a healthy pair beside them goes on.

package transport

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clientHello returns the bytes that a TLS client begins with.
func clientHello(t *testing.T) []byte {
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	buf := make([]byte, 16<<10)
	n, err := ours.Read(buf)
	require.NoError(t, err)
	require.NoError(t, ours.Close())
	return buf[:n]
}

// A handshake that drips byte by byte, one that stops in the middle, and one that never begins are all over when the
// time of the hello is.
func TestSlowHandshakes(t *testing.T) {
	tb, check := healthy(t, authority(t))
	hello := clientHello(t)
	for _, send := range []func(nc net.Conn){
		func(nc net.Conn) { // until it is closed; the last byte never comes, however fast the others do
			drip := time.NewTicker(5 * time.Millisecond)
			defer drip.Stop()
			for i := range len(hello) - 1 {
				if _, err := nc.Write(hello[i : i+1]); err != nil {
					return
				}
				<-drip.C
			}
		},
		func(nc net.Conn) { _, _ = nc.Write(hello) },
		func(nc net.Conn) { _, _ = nc.Write(hello[:len(hello)/2]) },
		func(net.Conn) {},
	} {
		counted := func() uint64 { return tb.Stats().TLSRefused["timeout"] + tb.Stats().SaidNothing }
		before := counted()
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			send(nc)
		}()
		_, err = io.Copy(io.Discard, nc)
		require.False(t, isTimeout(err), "it was closed by the other end")
		nc.Close()
		want(t, ended)
		until(t, func() bool { return counted() == before+1 })
	}
	until(t, func() bool { return tb.Stats().Pending == 0 })
	check()
}

// A chain of certificates of more bytes than a handshake may have is not read to its end.
func TestEndlessChain(t *testing.T) {
	ca := authority(t)
	tb, check := healthy(t, ca)
	long := leaf(t, ca, nil)
	for n := 0; n < 2*tb.cfg.HandshakeBytes; n += len(long.Certificate[0]) {
		long.Certificate = append(long.Certificate, long.Certificate[0])
	}
	nc, err := net.Dial("tcp", tb.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{long}})
	if err = c.Handshake(); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	require.Error(t, err)
	require.False(t, isTimeout(err))
	until(t, func() bool { return tb.Stats().TLSRefused["bytes"] == 1 })
	check()
}

// A thousand connections that say nothing, from one address: a fixed number of them is held until the time of the hello
// is over, the others are closed at once, and the healthy pair goes on.
func TestThousandSilentConnections(t *testing.T) {
	const strangers = 1000
	tb, check := healthy(t, authority(t))
	each := tb.cfg.MaxPendingEach
	require.Equal(t, 64, each)
	closed := make(chan struct{}, strangers)
	most := 0
	for range strangers {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		go func() {
			_, _ = io.Copy(io.Discard, nc)
			closed <- struct{}{}
		}()
		most = max(most, tb.Stats().Pending)
	}
	require.LessOrEqual(t, most, each)
	for range strangers {
		want(t, closed)
	}
	s := tb.Stats()
	until(t, func() bool { return tb.Stats().Pending == 0 })
	require.NotZero(t, s.TooManyEach)
	require.EqualValues(t, strangers, s.TooManyEach+s.SaidNothing)
	check()
}
