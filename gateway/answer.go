// Answers: which status an error has, and what its body says.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/kith-io/kith"
)

// RanHeader is the header of every answer to a call that failed: whether the message may have been handled, "true" or
// "false", as kith.MayHaveRun says it. Field may_have_run of the body says the same.
const RanHeader = "Kith-May-Have-Run"

// Failure is the body of an answer to a call that failed, as JSON.
type Failure struct {
	Code       string `json:"error"`          // what to branch on: a kith.Error's, or one of docs/gateway.md
	Kind       string `json:"kind,omitempty"` // of a kith.Error
	Text       string `json:"text"`
	MayHaveRun bool   `json:"may_have_run"`

	status int
}

// refused is the failure of a request that reached nobody.
func refused(status int, code, text string) *Failure { return &Failure{code, "", text, false, status} }

// statuses of the kinds of a kith.Error.
var kindStatus = map[kith.ErrorKind]int{
	kith.KindInvalid: http.StatusBadRequest, kith.KindNotFound: http.StatusNotFound,
	kith.KindConflict: http.StatusConflict, kith.KindDenied: http.StatusForbidden,
	kith.KindUnavailable: http.StatusServiceUnavailable, kith.KindExhausted: http.StatusTooManyRequests,
}

// plain are the errors with a meaning that does not follow from whether the message may have run, the first that
// matches.
var plain = []struct {
	err    error
	status int
	code   string
	text   string
}{
	{kith.ErrBadPayload, http.StatusBadRequest, "bad-payload", "the message cannot be read"},
	{kith.ErrBadID, http.StatusBadRequest, "bad-id", "an id has 1 to 1024 bytes"},
	{kith.ErrBadShard, http.StatusBadRequest, "bad-id", "the id belongs to no shard"},
	{kith.ErrPanic, http.StatusInternalServerError, "failed", "the handler failed"},
	{kith.ErrNoReply, http.StatusInternalServerError, "failed", "the handler gave no reply"},
	{kith.ErrNewFailed, http.StatusServiceUnavailable, "unavailable", "the entity could not be made"},
}

// failure returns how an error of a call is answered. naming, if not nil, names those that have no identity.
func failure(err error, naming func(err error) *kith.Error) *Failure {
	ran := kith.MayHaveRun(err)
	var named *kith.Error
	if !errors.As(err, &named) && naming != nil {
		named = naming(err)
	}
	if named != nil {
		status, known := kindStatus[named.Kind]
		if !known {
			status = http.StatusInternalServerError
		}
		return &Failure{named.Code, named.Kind.String(), named.Text, ran, status}
	}
	var headers *kith.HeadersError
	if errors.As(err, &headers) {
		return &Failure{"headers-too-large", "", headers.Error(), ran, http.StatusRequestHeaderFieldsTooLarge}
	}
	if errors.Is(err, kith.ErrTooLarge) {
		if ran {
			return &Failure{"reply-too-large", "", "the reply is too large", ran, http.StatusInternalServerError}
		}
		return &Failure{"too-large", "", "the message is too large", ran, http.StatusRequestEntityTooLarge}
	}
	for _, p := range plain {
		if errors.Is(err, p.err) {
			if p.err == kith.ErrBadPayload && ran {
				return &Failure{"failed", "", "the reply cannot be read", ran, http.StatusInternalServerError}
			}
			return &Failure{p.code, "", p.text, ran, p.status}
		}
	}
	switch {
	case !ran && !errors.Is(err, kith.ErrHandler):
		return &Failure{"unavailable", "", "nothing was done; try again", ran, http.StatusServiceUnavailable}
	case errors.Is(err, kith.ErrTimeout), errors.Is(err, kith.ErrPeerLost), errors.Is(err, kith.ErrStopped),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // the client's, which is gone
		return &Failure{"unknown", "", "no answer; it is not known whether the message was handled", ran,
			http.StatusGatewayTimeout}
	}
	return &Failure{"failed", "", "the handler failed", ran, http.StatusInternalServerError}
}

// WriteError answers a request to an HTTP handler of your own, of which an ask failed, as a Gateway does: with the
// status that err has, Retry-After, RanHeader, and a Failure as the body. docs/gateway.md lists the statuses. err is
// not nil, and nothing was written to w before.
func WriteError(w http.ResponseWriter, err error) { failure(err, nil).write(w) }

// write answers with a failure.
func (f *Failure) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set(RanHeader, strconv.FormatBool(f.MayHaveRun))
	if f.status == http.StatusServiceUnavailable || f.status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(f) // else the client is gone
}
