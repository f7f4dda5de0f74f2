// Answers: what a producer gets, in one byte and a text before it is an error again.

package delivery

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// What a Producer returns beside the errors of kith and store. Test with errors.Is; kith.MayHaveRun tells whether the
// message may be stored all the same.
var (
	// ErrFull: as many messages wait in the shard of the receiver as may (Queue.MaxMessages, Queue.MaxBytes).
	ErrFull = errors.New("delivery: the queue is full")
	// ErrTooLarge: the payload has more than MaxPayload bytes, or the store does not take it.
	ErrTooLarge = errors.New("delivery: the payload is too large")
	// ErrLost: the shard has another owner, or this one has ended, before the answer of the store was known.
	ErrLost = errors.New("delivery: the shard of the queue was lost")
	// ErrAway: the store does not answer.
	ErrAway = errors.New("delivery: the store does not answer")
	// ErrNoLetter: there is no such dead letter, or not any more.
	ErrNoLetter = errors.New("delivery: no such dead letter")
)

// code is an answer on its way.
type code byte

// The codes. They are spoken between nodes: numbers stay.
const (
	codeOK       code = 0
	codeFull     code = 1
	codeTooLarge code = 2
	codeLost     code = 3 // it was never sent to the store, or certainly had no effect
	codeMaybe    code = 4 // the same of one that may have had it
	codeAway     code = 5
	codeUnknown  code = 6 // the same of one that may have had its effect
	codeWentBack code = 7
	codeNoLetter code = 8
	codeBad      code = 9
	codes        code = 10
)

// meanings are the errors of the codes, and whether what was asked for may have taken place.
var meanings = [codes]struct {
	err   error
	maybe bool
}{
	codeFull: {ErrFull, false}, codeTooLarge: {ErrTooLarge, false}, codeLost: {ErrLost, false}, codeMaybe: {ErrLost, true},
	codeAway: {ErrAway, false}, codeUnknown: {ErrAway, true}, codeWentBack: {store.ErrStoreWentBack, true},
	codeNoLetter: {ErrNoLetter, false}, codeBad: {kith.ErrBadPayload, false},
}

// failure is the answer to a request that does not take place.
type failure struct {
	code code
	text string
}

// Error is its text.
func (f *failure) Error() string {
	if f.text == "" {
		return meanings[f.code].err.Error()
	}
	return meanings[f.code].err.Error() + ": " + f.text
}

// Unwrap returns what callers test for.
func (f *failure) Unwrap() error { return meanings[f.code].err }

// fails returns a failure with the text of err, or without.
func fails(c code, err error) *failure {
	f := &failure{code: c}
	if err != nil {
		f.text = cut(err.Error())
	}
	return f
}

// maxText is the most bytes of a text.
const maxText = 1 << 10

func cut(text string) string { return text[:min(len(text), maxText)] }

// answer is the failure as the asker gets it.
func (f *failure) answer() []byte { return append([]byte{byte(f.code)}, f.text...) }

// answered returns what an answer brings, or its error.
func answered(b []byte) ([]byte, error) {
	if len(b) == 0 || code(b[0]) >= codes {
		return nil, route.Ran(fmt.Errorf("%w: an answer that is none", kith.ErrBadPayload))
	}
	c, rest := code(b[0]), b[1:]
	if c == codeOK {
		return rest, nil
	}
	err := error(&failure{c, string(rest)})
	if meanings[c].maybe {
		return nil, route.Ran(err)
	}
	return nil, route.NotRun(err)
}
