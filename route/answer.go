// Answers with an identity: a handler's error that its asker can match, on whatever node it is.

package route

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/wire"
)

// ErrorKind says what an asker can do about an error of a handler, whatever its code is.
type ErrorKind uint8

// The kinds. Numbers stand on the wire and are never reused. One that came later than this build reads as KindUnknown.
const (
	KindUnknown     ErrorKind = 0 // nothing is said
	KindInvalid     ErrorKind = 1 // the message is wrong, and stays wrong
	KindNotFound    ErrorKind = 2 // what it is about does not exist
	KindConflict    ErrorKind = 3 // the entity's state forbids it
	KindDenied      ErrorKind = 4 // the asker may not
	KindUnavailable ErrorKind = 5 // not now: later it may do
	KindExhausted   ErrorKind = 6 // a bound is reached
	KindInternal    ErrorKind = 7 // a fault of the handler
	kindCount                 = 8
)

var kindNames = [kindCount]string{KindUnknown: "unknown", KindInvalid: "invalid", KindNotFound: "not-found",
	KindConflict: "conflict", KindDenied: "denied", KindUnavailable: "unavailable", KindExhausted: "exhausted",
	KindInternal: "internal"}

// String names the kind.
func (k ErrorKind) String() string { return enum.Name(kindNames[:], k, "kind") }

// MarshalText gives the name.
func (k ErrorKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *ErrorKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// MaxErrorCode is the most bytes of an Error's code.
const MaxErrorCode = 64

// Error is an error with an identity, which it keeps on its way to an asker on another node: two of one Code match
// (errors.Is), whatever their texts. A handler returns it, or an error that wraps it; errors.As gives it to the asker
// with the text of what the handler returned. Make it with NewError, once for each code, as a variable that both sides
// import.
type Error struct {
	Code string // 1 to MaxErrorCode bytes of UTF-8 without control characters
	Kind ErrorKind
	Text string
}

// NewError returns an error of that code and kind. A code that breaks its bounds is cut, and what may not stand in it
// replaced by "_".
func NewError(code string, kind ErrorKind, text string) *Error {
	code = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(code, "_"))
	for len(code) > MaxErrorCode {
		code = strings.ToValidUTF8(code[:MaxErrorCode], "")
	}
	if code == "" {
		code = "_"
	}
	return &Error{code, kind, text}
}

// Error returns the text, or the code where there is none.
func (e *Error) Error() string {
	if e.Text == "" {
		return e.Code
	}
	return e.Text
}

// Is reports whether target has the same code.
func (e *Error) Is(target error) bool {
	o, ok := target.(*Error)
	return ok && o.Code == e.Code
}

// answered is the error of an asker that got a HandlerNamed as its answer.
type answered struct {
	named *Error // nil: the handler's error has no code
	why   Reason // of the handler's own ask that failed; OK: none did
	text  string
}

// Error says that a handler returned it, and its text.
func (a *answered) Error() string { return ErrHandler.Error() + ": " + a.text }

// Unwrap returns ErrHandlerNamed, and what else it is.
func (a *answered) Unwrap() (all []error) {
	all = append(all, ErrHandlerNamed)
	if a.why != OK {
		all = append(all, a.why.Err())
	}
	if a.named != nil {
		all = append(all, a.named)
	}
	return all
}

// Named returns how the error of a handler is answered: HandlerNamed with a payload that ReplyError reads, or (ok is
// false) as HandlerFailed with its text, because it has no code, and is not that of an ask of the handler's own. text
// is its text, cut already. Methods of err may panic.
func Named(err error, text []byte) (payload []byte, ok bool) {
	var named *Error
	errors.As(err, &named)
	why := nested(err)
	var said *certain
	if away := why == OK && errors.As(err, &said) && !said.ran; away { // an ask of its own was turned away
		return TurnedAway(err, text), true
	}
	if named == nil && why == OK {
		return nil, false
	}
	code, kind, ran := "", KindUnknown, byte(1)
	if named != nil {
		code, kind = NewError(named.Code, 0, "").Code, named.Kind
	}
	if why != OK && !MayHaveRun(err) {
		ran = 0
	}
	return putNamed(code, kind, ran, why, text), true
}

// TurnedAway returns the payload of a HandlerNamed for a message that was turned away with err before its handler was
// called, so that MayHaveRun says false of it; the rest is as Named has it. err nil: nothing but the text is known.
func TurnedAway(err error, text []byte) []byte {
	var named *Error
	errors.As(err, &named)
	code, kind := "", KindUnknown
	if named != nil {
		code, kind = NewError(named.Code, 0, "").Code, named.Kind
	}
	return putNamed(code, kind, 0, OK, text)
}

// putNamed writes a payload.
func putNamed(code string, kind ErrorKind, ran byte, why Reason, text []byte) (payload []byte) {
	payload = append(make([]byte, 0, namedSize+len(code)+len(text)), byte(kind), ran)
	payload = wire.AppendU16(payload, uint16(why))
	payload = append(append(payload, byte(len(code))), code...)
	return append(payload, text...)
}

// namedSize is how many bytes stand before the code: kind, whether the handler of the inner ask may have run, its
// reason, the length of the code.
const namedSize = 1 + 1 + 2 + 1

// nested is why an ask of the handler's own failed if the handler returned its error, OK when it is no such error. A
// payload that a codec refused may be that of the handler's own message.
func nested(err error) Reason {
	var a *answered
	if errors.As(err, &a) {
		return a.why
	}
	switch why := ReasonOf(err); why {
	case HandlerFailed, HandlerNamed, BadPayload:
		return OK
	default:
		return why
	}
}

// NamedText returns the text in the payload of a HandlerNamed, for a peer that does not know the reason.
func NamedText(payload []byte) []byte {
	_, _, text := readNamed(payload)
	return text
}

// readNamed reads a payload. One that cannot be read is a text and nothing else.
func readNamed(payload []byte) (a answered, ran bool, text []byte) {
	if len(payload) < namedSize || len(payload) < namedSize+int(payload[4]) || payload[4] > MaxErrorCode {
		return answered{text: string(payload)}, true, payload
	}
	kind, why, rest := ErrorKind(payload[0]), Reason(payload[2])|Reason(payload[3])<<8, payload[namedSize:]
	if kind >= kindCount {
		kind = KindUnknown
	}
	code, text := string(rest[:payload[4]]), sansPrefix(rest[payload[4]:])
	a.text = string(text)
	if code != "" {
		a.named = &Error{code, kind, a.text}
	}
	if why.Known() {
		a.why = why
	}
	return a, payload[1] != 0, text
}

// namedError returns the error of an answer HandlerNamed.
func namedError(payload []byte) error {
	a, ran, _ := readNamed(payload)
	if !ran {
		return &certain{&a, false}
	}
	return &certain{&a, true}
}

// ReplyError returns the error of an answer with reason r and text, which may be empty; of a HandlerNamed it is the
// payload.
func ReplyError(r Reason, text []byte) error {
	if r == HandlerNamed {
		return namedError(text)
	}
	err := r.Err()
	if text = sansPrefix(text); err == nil || len(text) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// sansPrefix returns the text of a handler's error without what an error of ErrHandler begins with: it is that of an
// ask of the handler's own, and the text would say so once for each hop.
func sansPrefix(text []byte) []byte {
	for {
		rest, is := bytes.CutPrefix(text, handlerPrefix)
		if !is {
			return text
		}
		text = rest
	}
}

var handlerPrefix = []byte(ErrHandler.Error() + ": ")

// SpokenWith is Spoken of an answer with its payload, which may be another one then.
func (r Reason) SpokenWith(version uint16, payload []byte) (Reason, []byte) {
	spoken := r.Spoken(version)
	if r == HandlerNamed && spoken != r {
		payload = NamedText(payload)
	}
	return spoken, payload
}
