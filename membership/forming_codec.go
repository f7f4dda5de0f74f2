// The bodies of the two messages by which nodes that are in no cluster agree on which forms one.

package membership

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The flags of a form-ask, and of a form-answer.
const (
	askWants     = 1 // the asker wants the pledge for its attempt; without it, it has given that attempt up
	askRemembers = 2 // it has a record
	answerMay    = 1 // the answering node might form a cluster itself, by its record
	answerCounts = 2 // Record.Counts
	answerComing = 4 // Record.Newcomers follows the addresses
)

// formAskBody asks a node that is in no cluster what it remembers. attempt is the latest attempt of the asker to form a
// cluster, zero before the first.
type formAskBody struct {
	nonce, attempt   uint64
	wants, remembers bool
}

func appendFormAsk(b []byte, a formAskBody) []byte {
	b = wire.AppendU64(wire.AppendU64(b, a.nonce), a.attempt)
	return append(b, flagIf(a.wants, askWants)|flagIf(a.remembers, askRemembers))
}

func readFormAsk(body []byte) (formAskBody, error) {
	r := wire.NewReader(wire.KindFormAsk, body)
	a := formAskBody{nonce: r.U64(), attempt: r.U64()}
	flags := r.U8()
	a.wants, a.remembers = flags&askWants != 0, flags&askRemembers != 0
	check(&r, flags&^(askWants|askRemembers) == 0 && (a.attempt != 0 || !a.wants), true)
	return a, r.Done()
}

// formAnswerBody is the answer: a record, zero when there is none, and the attempt of the asker to which the sender has
// pledged itself, zero for none.
type formAnswerBody struct {
	to, nonce, attempt uint64
	may                bool
	record             Record
}

func appendFormAnswer(b []byte, a formAnswerBody) []byte {
	b = wire.AppendU64(wire.AppendU64(wire.AppendU64(b, a.to), a.nonce), a.attempt)
	b = append(b, flagIf(a.may, answerMay)|flagIf(a.record.Counts, answerCounts)|
		flagIf(a.record.Newcomers > 0, answerComing))
	for _, v := range [...]uint64{a.record.ClusterID, a.record.Birth, a.record.Highest} {
		b = wire.AppendU64(b, v)
	}
	b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(a.record.More)), uint64(len(a.record.Others)))
	for _, o := range a.record.Others {
		b = peer.AppendAddr(b, o)
	}
	if a.record.Newcomers > 0 {
		b = wire.AppendUvarint(b, uint64(a.record.Newcomers))
	}
	return b
}

func readFormAnswer(body []byte) (formAnswerBody, error) {
	r := wire.NewReader(wire.KindFormAnswer, body)
	a := formAnswerBody{to: r.U64(), nonce: r.U64(), attempt: r.U64()}
	flags := r.U8()
	a.may = flags&answerMay != 0
	a.record = Record{ClusterID: r.U64(), Birth: r.U64(), Highest: r.U64(), Counts: flags&answerCounts != 0}
	more := r.Uvarint()
	check(&r, flags&^(answerMay|answerCounts|answerComing) == 0 && more <= cluster.MaxMembers, true)
	a.record.More = int(min(more, cluster.MaxMembers))
	n := r.Count(1, MaxRemembered)
	for range n {
		o := peer.ReadAddr(&r)
		last := len(a.record.Others) - 1
		check(&r, !o.IsZero(), last < 0 || a.record.Others[last].Compare(o) < 0)
		if r.Err() != nil {
			break
		}
		a.record.Others = append(a.record.Others, o)
	}
	if flags&answerComing != 0 && r.Err() == nil {
		coming := r.Uvarint()
		check(&r, coming > 0 && coming <= uint64(len(a.record.Others)), true)
		a.record.Newcomers = int(min(coming, MaxRemembered))
	}
	known := a.record.Known()
	check(&r, known == (a.record.Birth != 0) && (known || a.record.Alone() && !a.record.Counts), true)
	return a, r.Done()
}

func flagIf(on bool, flag byte) byte {
	if on {
		return flag
	}
	return 0
}

// sortAddrs puts addresses into their order, each once.
func sortAddrs(list []peer.Addr) []peer.Addr {
	slices.SortFunc(list, peer.Addr.Compare)
	return slices.Compact(list)
}
