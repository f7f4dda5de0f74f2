// Answers: what an asker gets, in one byte and a text before it is an error again.

package durable

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// What an ask of a durable entity gets beside the errors of kith and store. Test with errors.Is; kith.MayHaveRun tells
// whether the message may have had its effect.
var (
	// ErrRejected: the handler returned an error. Nothing of the message was written.
	ErrRejected = errors.New("durable: the handler returned an error")
	// ErrLost: the shard has another owner, or this one has ended, before the commit was known.
	ErrLost = errors.New("durable: the shard was lost before what the message did was known to be stored")
	// ErrBusy: too many messages of the shard wait for the store.
	ErrBusy = errors.New("durable: too many messages wait for the store")
	// ErrAway: the store does not answer.
	ErrAway = errors.New("durable: the store does not answer")
	// ErrRecord: what is stored of the entity cannot be decoded, or is of a newer schema.
	ErrRecord = errors.New("durable: the stored state cannot be read")
	// ErrTooLarge: the state has more than MaxState bytes.
	ErrTooLarge = errors.New("durable: the state is too large")
	// ErrOutboxFull: the handler sent more than may wait to be acknowledged. Nothing of the message was written.
	ErrOutboxFull = errors.New("durable: too much waits to be acknowledged by its receivers")
	// ErrNoType: the handler sent to a type that is not registered on its node.
	ErrNoType = errors.New("durable: no such type on this node")
	// ErrKeyUsed: the entity has had another message with this key.
	ErrKeyUsed = errors.New("durable: the key was used for another message")
	// ErrKeysFull: the entity remembers as many keys as it may.
	ErrKeysFull = errors.New("durable: the entity remembers too many keys")
	// ErrBadKey: a key is empty or too long.
	ErrBadKey = errors.New("durable: no key")
	// ErrExpired: a message that a handler sent was given up.
	ErrExpired = errors.New("durable: it was not handled in time")
)

// code is an answer on its way.
type code byte

// The codes. They are spoken between nodes: numbers stay.
const (
	codeOK         code = 0
	codeRejected   code = 1
	codeLost       code = 2 // its commit was never sent, or certainly had no effect
	codeMaybe      code = 3 // the same of one that may have had it
	codeBusy       code = 4
	codeAway       code = 5
	codeRecord     code = 6
	codeTooLarge   code = 7
	codeWentBack   code = 8
	codeBackMaybe  code = 9
	codeBadPayload code = 10
	codeOutboxFull code = 11
	codeNoType     code = 12
	codeBadSend    code = 13
	codeKeyUsed    code = 14
	codeKeysFull   code = 15
	codes          code = 16
)

// meanings are the errors of the codes, and whether the message may have had its effect.
var meanings = [codes]struct {
	err   error
	maybe bool
}{
	codeRejected: {ErrRejected, true}, codeLost: {ErrLost, false}, codeMaybe: {ErrLost, true}, codeBusy: {ErrBusy, false},
	codeAway: {ErrAway, false}, codeRecord: {ErrRecord, false}, codeTooLarge: {ErrTooLarge, true},
	codeWentBack: {store.ErrStoreWentBack, false}, codeBackMaybe: {store.ErrStoreWentBack, true},
	codeBadPayload: {kith.ErrBadPayload, false}, codeOutboxFull: {ErrOutboxFull, true}, codeNoType: {ErrNoType, true},
	codeBadSend: {kith.ErrBadPayload, true}, codeKeyUsed: {ErrKeyUsed, false}, codeKeysFull: {ErrKeysFull, false},
}

// failure is what a message gets that has no effect here.
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
		text := err.Error()
		f.text = text[:min(len(text), maxText)]
	}
	return f
}

// maxText is the most bytes of a text.
const maxText = 1 << 10

// answer is the failure as it goes to the asker.
func (f *failure) answer() []byte { return append([]byte{byte(f.code)}, f.text...) }

// answered returns the reply of an answer, or its error.
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
