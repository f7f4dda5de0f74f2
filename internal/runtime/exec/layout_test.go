// The layout of what several cores write: what is written for each message lies in no line of memory that others read
// for each message.

package exec

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// apart demands that what lies from a up to b and what lies from c up to d share no line of memory, wherever the whole
// begins.
func apart(t *testing.T, what string, a, b, c, d uintptr) {
	t.Helper()
	require.True(t, b+cacheLine <= c || d+cacheLine <= a, "%s: %d to %d and %d to %d", what, a, b, c, d)
}

// Senders write a queue's lock and what they gather for each message, on other cores than the goroutine that works it
// off. That one reads its own fields for each message too. When both lay in one line a tell to an Inline entity of the
// same node took nearly twice as long (CARD-3).
func TestSendersShareNoLineWithTheirReader(t *testing.T) {
	var q execQueue
	from, to := unsafe.Offsetof(q.mu), unsafe.Offsetof(q.awake)+unsafe.Sizeof(q.awake)
	for name, at := range map[string]uintptr{"in": unsafe.Offsetof(q.in), "here": unsafe.Offsetof(q.here)} {
		require.True(t, from <= at && at < to, name)
	}
	for name, at := range map[string]uintptr{
		"limit": unsafe.Offsetof(q.limit), "wake": unsafe.Offsetof(q.wake), "callFrame": unsafe.Offsetof(q.callFrame),
		"hurry": unsafe.Offsetof(q.hurry), "out": unsafe.Offsetof(q.out),
	} {
		apart(t, name, from, to, at, unsafe.Sizeof(q))
	}
	var p pass
	local := unsafe.Offsetof(p.local)
	for name, at := range map[string]uintptr{
		"x": unsafe.Offsetof(p.x), "loop": unsafe.Offsetof(p.loop), "staged": unsafe.Offsetof(p.staged),
		"ahead": unsafe.Offsetof(p.ahead), "timed": unsafe.Offsetof(p.timed), "backlog": unsafe.Offsetof(p.backlog),
	} {
		apart(t, "pass."+name, local+from, local+to, at, at+unsafe.Sizeof(uintptr(0)))
	}
	var w worker
	queue := unsafe.Offsetof(w.queue)
	for name, at := range map[string]uintptr{
		"x": unsafe.Offsetof(w.x), "count": unsafe.Offsetof(w.count), "ahead": unsafe.Offsetof(w.ahead),
	} {
		apart(t, "worker."+name, queue+from, queue+to, at, at+unsafe.Sizeof(uintptr(0)))
	}

	q.init(1<<20, nil)
	in := uintptr(unsafe.Pointer(unsafe.SliceData(q.in.chunks)))
	out := uintptr(unsafe.Pointer(unsafe.SliceData(q.out.chunks)))
	size := uintptr(cap(q.in.chunks)) * unsafe.Sizeof(chunk{})
	require.NotEqual(t, in, out)
	require.GreaterOrEqual(t, max(in, out)-min(in, out), size)
	require.GreaterOrEqual(t, size, uintptr(2*cacheLine), "short arrays may lie in one line")
}

// Runners on several cores write what belongs to each of them for each message.
func TestRunnersShareNoLine(t *testing.T) {
	require.EqualValues(t, 4*cacheLine, unsafe.Sizeof(runner{}), "as the allocator has it")
}

// What a message to a Worker or Inline entity touches of its host is one line: with many shards each message waits for
// a host's memory. Objects as large as a host begin with a word of the allocator's.
func TestHostIsOneLineForAMessage(t *testing.T) {
	var h Host
	const word = unsafe.Sizeof(uintptr(0))
	require.Greater(t, unsafe.Sizeof(h), uintptr(512), "it has the word before it")
	for name, end := range map[string]uintptr{
		"t": unsafe.Offsetof(h.t) + word, "sh": unsafe.Offsetof(h.sh) + word, "queue": unsafe.Offsetof(h.queue) + word,
		"callFrame": unsafe.Offsetof(h.callFrame) + word, "term": unsafe.Offsetof(h.term) + 4,
		"epoch": unsafe.Offsetof(h.epoch) + 4, "singleThreaded": unsafe.Offsetof(h.singleThreaded) + 1,
		"endReported": unsafe.Offsetof(h.endReported) + 1,
		"closed":      unsafe.Offsetof(h.closed) + unsafe.Sizeof(h.closed), "upTo": unsafe.Offsetof(h.upTo) + 8,
	} {
		require.LessOrEqual(t, end+word, uintptr(cacheLine), name)
	}
}
