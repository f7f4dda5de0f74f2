// Tally: how many of a link's frames are tells, and of how many its credit shows that they were consumed.

package flow

// tally goes along with a Link: what it gathers, what the last swap brought, and what it hands out of that.
type tally struct {
	gathered, rest   int   // tells gathered since the last swap, and those that it brought
	marks, restMarks []int // up to each mark of the link
	taken            int   // of those that the swap brought, how many were handed out

	sent, known uint64   // on this connection: handed out, and said to be consumed as far as flights shows
	flights     []flight // in between, in order
}

// flight is how many tells were sent on this connection with its first so many bytes.
type flight struct {
	bytes int64
	tells uint64
}

func (t *tally) mark() { t.marks = append(t.marks, t.gathered) }

func (t *tally) swap() {
	t.marks, t.restMarks = t.restMarks[:0], t.marks
	t.gathered, t.rest, t.taken = 0, t.gathered, 0
}

// take notes that tells of the last swap have been handed out, with so many bytes of the connection. Between two
// flights that are kept lie at least apart bytes, so there are few.
func (t *tally) take(tells int, bytes, apart int64) {
	t.sent += uint64(tells - t.taken)
	t.taken = tells
	f := flight{bytes, t.sent}
	if n := len(t.flights); n >= 2 && t.flights[n-1].bytes-t.flights[n-2].bytes < apart {
		t.flights[n-1] = f
		return
	}
	t.flights = append(t.flights, f)
}

// consume forgets the flights that were consumed.
func (t *tally) consume(bytes int64) {
	n := 0
	for n < len(t.flights) && t.flights[n].bytes <= bytes {
		t.known = t.flights[n].tells
		n++
	}
	t.flights = t.flights[:copy(t.flights, t.flights[n:])]
}

// begin starts a connection.
func (t *tally) begin() { t.sent, t.known, t.flights = 0, 0, t.flights[:0] }
