// Tests of TLS over memory: what the standard library must go on doing for it, records cut anywhere, changed keys and
// tickets.

package trust

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secrets collects a key log and finds a secret in it.
type secrets struct{ strings.Builder }

func (s *secrets) get(t testing.TB, label string) []byte {
	for line := range strings.Lines(s.String()) {
		if f := strings.Fields(line); f[0] == label {
			secret, err := hex.DecodeString(f[2])
			require.NoError(t, err)
			return secret
		}
	}
	require.FailNow(t, "no "+label)
	return nil
}

// expand is HKDF-Expand-Label of RFC 8446, section 7.1, without a context.
func expand(t testing.TB, secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(n)), byte(len(label)))
	out, err := hkdf.Expand(sha256.New, secret, string(append(info, label...))+"\x00", n)
	require.NoError(t, err)
	return out
}

// records is one direction of a record layer, by hand: the standard library's own cannot change its keys on demand.
type records struct {
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
	secret []byte
}

func newRecords(t testing.TB, secret []byte) *records {
	block, err := aes.NewCipher(expand(t, secret, "key", 16))
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	return &records{aead: aead, iv: expand(t, secret, "iv", 12), secret: secret}
}
func (r *records) next(t *testing.T) *records {
	return newRecords(t, expand(t, r.secret, "traffic upd", 32))
}
func (r *records) nonce() []byte {
	n := append([]byte(nil), r.iv...)
	for i := range 8 {
		n[4+i] ^= byte(r.seq >> (56 - 8*i))
	}
	r.seq++
	return n
}
func (r *records) seal(kind byte, data []byte) []byte {
	n := len(data) + 1 + 16
	head := []byte{23, 3, 3, byte(n >> 8), byte(n)}
	return r.aead.Seal(head, r.nonce(), append(append([]byte(nil), data...), kind), head)
}
func (r *records) open(t *testing.T, record []byte) (kind byte, data []byte) {
	plain, err := r.aead.Open(nil, r.nonce(), record[recordHeader:], record[:recordHeader])
	require.NoError(t, err)
	return plain[len(plain)-1], plain[:len(plain)-1]
}

// kinds of TLS content.
const (
	handshakeContent = 22
	dataContent      = 23
)

// meeting is a finished handshake: our end, over memory from now on, and the other end, with a socket that records by
// hand may be written to.
type meeting struct {
	ours  *Conn
	other *tls.Conn
	sock  net.Conn
	log   *secrets
}

// meet makes one. Our end dials or accepts; the other one may hand out tickets.
func meet(t testing.TB, dialler bool) *meeting {
	ca := authority(t)
	tr := &Store{uri: ClusterURI("test"), now: time.Now, handshakeBytes: 16 << 10}
	tr.current.Store(&State{Credentials: Credentials{Certificate: leaf(t, ca), CAs: pool(t, ca)}, uri: tr.uri})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	m := &meeting{log: &secrets{}}
	m.sock, err = net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	mine, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { m.sock.Close(); mine.Close() })
	cfg := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{leaf(t, ca)},
		KeyLogWriter: m.log, ClientAuth: tls.RequireAnyClientCert}
	if dialler {
		m.ours, m.other = tr.Dial(mine, ""), tls.Server(m.sock, cfg)
	} else {
		m.ours, m.other = tr.Accept(mine), tls.Client(m.sock, cfg)
	}
	require.NoError(t, m.sock.SetDeadline(time.Now().Add(patience)))
	require.NoError(t, mine.SetDeadline(time.Now().Add(patience)))
	done := make(chan error, 1)
	go func() { done <- m.other.Handshake() }()
	require.NoError(t, m.ours.Shake(nil))
	require.NoError(t, <-done)
	// The hello's frame is the last thing read from the socket.
	go func() { _, _ = m.other.Write([]byte("hello")) }()
	hello := make([]byte, 5)
	_, err = io.ReadFull(m.ours, hello)
	require.NoError(t, err)
	require.Equal(t, "hello", string(hello))
	sock, s := Bare(m.ours)
	require.Equal(t, mine, sock)
	require.Equal(t, m.ours, s)
	require.EqualValues(t, tls.TLS_AES_128_GCM_SHA256, m.ours.ConnectionState().CipherSuite,
		"the records by hand are of it")
	return m
}

// gather takes plaintext.
type gather struct{ got []byte }

func (g *gather) Take(b []byte) error {
	g.got = append(g.got, b...)
	return nil
}

// written returns what our end wants to be written.
func (m *meeting) written() []byte {
	out := append([]byte(nil), m.ours.Detach()...)
	m.ours.Release()
	return out
}

// The standard library's promise that all of this rests on: a read that fails for a while, anywhere in a record, leaves
// a tls.Conn as it was, and it goes on when there is more. Here every byte comes alone, with a failed read behind it.
func TestDryReadKeepsState(t *testing.T) {
	m := meet(t, false)
	theirs := newRecords(t, m.log.get(t, "CLIENT_TRAFFIC_SECRET_0"))
	theirs.seq = 1 // the hello
	stream := theirs.seal(dataContent, []byte("one"))
	stream = append(stream, theirs.seal(handshakeContent, []byte{24, 0})...) // a change of keys, in two records
	stream = append(stream, theirs.seal(handshakeContent, []byte{0, 1, 0})...)
	theirs = theirs.next(t)
	stream = append(stream, theirs.seal(dataContent, []byte("two"))...)
	var got []byte
	buf := make([]byte, 100)
	for i := range stream {
		m.ours.feed.rec = stream[i : i+1]
		n, err := m.ours.Read(buf)
		got = append(got, buf[:n]...)
		if err == nil {
			n, err = m.ours.Read(buf)
			require.Zero(t, n)
		}
		require.ErrorIs(t, err, errDry)
		ne, ok := err.(net.Error)
		require.True(t, ok && ne.Timeout())
	}
	require.Equal(t, "onetwo", string(got))
	_, err := m.ours.Write([]byte("still writing"))
	require.NoError(t, err)
	require.NotEmpty(t, m.written())
}

// cases of a stream: plaintext of many sizes, in one record each.
func chapters() (texts [][]byte) {
	for i, n := range []int{1, 2, 100, MaxPlain, 3, 5000, MaxPlain, MaxPlain, 7} {
		texts = append(texts, []byte(strings.Repeat(string(rune('a'+i)), n)))
	}
	return texts
}

// A stream that is cut once, at every place, and one that comes in pieces of every size: the plaintext is the same.
func TestSecureReadSplitAnywhere(t *testing.T) {
	m := meet(t, false)
	theirs := newRecords(t, m.log.get(t, "CLIENT_TRAFFIC_SECRET_0"))
	theirs.seq = 1
	var room []byte
	for cut := range 3 * 40 {
		stream := theirs.seal(dataContent, []byte("abc"))
		stream = append(stream, theirs.seal(dataContent, []byte(strings.Repeat("d", 30)))...)
		stream = append(stream, theirs.seal(dataContent, []byte("ef"))...)
		cut = min(cut, len(stream))
		g := &gather{}
		require.NoError(t, m.ours.Unseal(&room, stream[:cut], g))
		require.NoError(t, m.ours.Unseal(&room, stream[cut:], g))
		require.Equal(t, "abc"+strings.Repeat("d", 30)+"ef", string(g.got), "cut at %d", cut)
	}
	for size := 1; size < 40_000; size = size*3 + 1 {
		var stream, plain []byte
		for _, text := range chapters() {
			stream, plain = append(stream, theirs.seal(dataContent, text)...), append(plain, text...)
		}
		g := &gather{}
		for at := 0; at < len(stream); at += size {
			require.NoError(t, m.ours.Unseal(&room, stream[at:min(at+size, len(stream))], g))
		}
		require.Equal(t, plain, g.got, "in pieces of %d", size)
	}
	require.LessOrEqual(t, cap(m.ours.feed.carry), 2*maxRecord)
}

// The other end changes its keys, asking for ours to be changed too; we answer, and both directions go on.
func TestKeyUpdateOnTheLoop(t *testing.T) {
	for _, dialler := range []bool{false, true} {
		m := meet(t, dialler)
		theirLabel, ourLabel := "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"
		if dialler {
			theirLabel, ourLabel = ourLabel, theirLabel
		}
		theirs, ours := newRecords(t, m.log.get(t, theirLabel)), newRecords(t, m.log.get(t, ourLabel))
		theirs.seq = 1 // the hello
		plain, g := []byte(nil), &gather{}
		for round := range 3 {
			stream := theirs.seal(dataContent, []byte("old"))
			stream = append(stream, theirs.seal(handshakeContent, []byte{24, 0, 0, 1, 1})...)
			theirs = theirs.next(t)
			stream = append(stream, theirs.seal(dataContent, []byte("new"))...)
			g.got = nil
			require.NoError(t, m.ours.Unseal(&plain, stream, g))
			require.Equal(t, "oldnew", string(g.got))
			sealedBytes, err := m.ours.Seal([]byte("answer"))
			require.NoError(t, err)
			first := recordSize(sealedBytes)
			kind, data := ours.open(t, sealedBytes[:first])
			require.EqualValues(t, handshakeContent, kind, "round %d", round)
			require.Equal(t, []byte{24, 0, 0, 1, 0}, data)
			ours = ours.next(t)
			kind, data = ours.open(t, sealedBytes[first:])
			require.EqualValues(t, dataContent, kind)
			require.Equal(t, "answer", string(data))
			m.ours.Release()
		}
	}
}

// Tickets that a foreign acceptor sends on the loop are taken and change nothing.
func TestTicketsOnTheLoop(t *testing.T) {
	m := meet(t, true)
	theirs := newRecords(t, m.log.get(t, "SERVER_TRAFFIC_SECRET_0"))
	theirs.seq = 1
	ticket := []byte{4, 0, 0, 21, 0, 0, 1, 0, 1, 2, 3, 4, 1, 9, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0}
	ticket[3] = byte(len(ticket) - 4)
	plain, g := []byte(nil), &gather{}
	for i := range 40 {
		if i%10 == 9 { // more in a row than that are not believed
			require.NoError(t, m.ours.Unseal(&plain, theirs.seal(dataContent, []byte{'.'}), g))
			continue
		}
		record := theirs.seal(handshakeContent, ticket)
		require.NoError(t, m.ours.Unseal(&plain, record[:9], g))
		require.NoError(t, m.ours.Unseal(&plain, record[9:], g))
	}
	require.Equal(t, "....", string(g.got))
}

// What a peer may do wrong behind the handshake ends its connection: a changed byte, a record over the limit, records
// that carry nothing without end; closing in order is no fault.
func TestBrokenRecords(t *testing.T) {
	for name, c := range map[string]struct {
		stream func(r *records) []byte
		want   string
	}{
		"changed": {func(r *records) []byte {
			b := r.seal(dataContent, []byte("text"))
			b[10]++
			return b
		}, "bad record MAC"},
		"too long": {func(r *records) []byte { return []byte{23, 3, 3, 0x50, 0, 1} }, "oversized record"},
		"no data": {func(r *records) (b []byte) {
			for range 100 {
				b = append(b, r.seal(dataContent, nil)...)
			}
			return b
		}, "too many ignored records"},
		"not TLS": {func(r *records) []byte { return []byte("\xff\xff\xff\xff\xff") }, "version"},
		"closed":  {func(r *records) []byte { return r.seal(21, []byte{1, 0}) }, ErrEnded.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			m := meet(t, false)
			theirs := newRecords(t, m.log.get(t, "CLIENT_TRAFFIC_SECRET_0"))
			theirs.seq = 1
			plain, g := []byte(nil), &gather{}
			b := append(theirs.seal(dataContent, []byte("good")), c.stream(theirs)...)
			require.ErrorContains(t, m.ours.Unseal(&plain, b, g), c.want)
			require.Equal(t, "good", string(g.got), "what came before is delivered")
			require.Error(t, m.ours.Unseal(&plain, theirs.seal(dataContent, []byte("more")), g))
			require.Equal(t, "good", string(g.got))
		})
	}
}

// FuzzRecords feeds a finished handshake with anything, in pieces: an error or nothing, no panic, and no more memory
// than a record.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{23, 3, 3, 0, 5, 1, 2, 3, 4, 5}, uint8(3))
	f.Add([]byte{22, 3, 3, 0x40, 0}, uint8(1))
	f.Add([]byte{21, 3, 3, 0, 2, 1, 0}, uint8(7))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		fd := &feed{}
		size := int(piece)%64 + 1
		var out []byte
		buf := make([]byte, maxRecord+recordHeader)
		for at := 0; at < len(b); at += size {
			fd.in = b[at:min(at+size, len(b))]
			for fd.next() {
				n, err := fd.Read(buf)
				if err != nil { // no assertion by reflection for every piece
					t.Fatal(err)
				}
				out = append(out, buf[:n]...)
			}
			if len(fd.carry) > recordHeader+maxRecord {
				t.Fatal("more is kept than a record")
			}
		}
		require.Equal(t, string(b), string(append(out, fd.carry...)), "no byte is lost, doubled or reordered")
	})
}

// Sealing and opening alone, without sockets: what TLS costs a byte.
func BenchmarkSeal(b *testing.B) {
	m := meet(b, false)
	text := make([]byte, SealChunk)
	b.SetBytes(SealChunk)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.ours.Seal(text); err != nil {
			b.Fatal(err)
		}
		m.ours.Release()
	}
}
func BenchmarkOpen(b *testing.B) {
	m := meet(b, false)
	theirs := newRecords(b, m.log.get(b, "CLIENT_TRAFFIC_SECRET_0"))
	theirs.seq = 1
	text := make([]byte, MaxPlain)
	plain, g := []byte(nil), nothing{}
	b.SetBytes(4 * MaxPlain)
	b.ReportAllocs()
	for range b.N {
		b.StopTimer()
		var stream []byte
		for range 4 {
			stream = append(stream, theirs.seal(dataContent, text)...)
		}
		b.StartTimer()
		if err := m.ours.Unseal(&plain, stream, g); err != nil {
			b.Fatal(err)
		}
	}
}

// nothing takes plaintext and drops it.
type nothing struct{}

func (nothing) Take([]byte) error { return nil }
