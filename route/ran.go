// Ran: what the error of a message says about whether a handler was called for it.

package route

import "errors"

// mayHave are the reasons after which a handler may have been called for the message. After all others none was, and
// none will be.
var mayHave = [reasonCount]bool{
	HandlerFailed: true, HandlerPanic: true, NoReply: true, HandlerNamed: true, // it was
	TimedOut: true, PeerLost: true, Stopped: true, LostInFlight: true, // nobody knows
}

// MayHaveRun reports whether a handler may have been called for a message, by the error that its sender got: false
// means that none was and none will be, so that it can be sent again without being handled twice. It is true for nil
// and for every error that it knows nothing of. An error must not be joined to that of another message.
func MayHaveRun(err error) bool {
	if err == nil {
		return true
	}
	var said *certain
	if errors.As(err, &said) {
		return said.ran
	}
	why := ReasonOf(err)
	var refused *RefusedError
	if (why == TooLarge || why == LinkFull) && errors.As(err, &refused) && refused.Limit == 0 {
		return true // an older node says so of its handler's answer, too
	}
	return mayHave[why]
}

// certain is an error that says more about the handler than its reason does.
type certain struct {
	error
	ran bool
}

// Unwrap returns the error.
func (e *certain) Unwrap() error { return e.error }

// NotRun returns err, of a message for which certainly no handler was called or will be, so that MayHaveRun knows it.
// Nil stays nil.
func NotRun(err error) error {
	if err == nil || !MayHaveRun(err) {
		return err
	}
	return &certain{err, false}
}

// Ran returns err, of a message for which a handler was called, so that MayHaveRun knows it. Nil stays nil.
func Ran(err error) error {
	if err == nil || MayHaveRun(err) {
		return err
	}
	return &certain{err, true}
}
