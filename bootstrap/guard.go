// Guard: what a request to the contact point passes before its route, and what an answer of another one has to be.

package bootstrap

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"

	"github.com/kith-io/kith/internal/base/localname"
	"github.com/kith-io/kith/internal/base/refuse"
)

// contentType is that of all bodies here.
const contentType = "application/json"

// isJSON reports whether a body is JSON by its header.
func isJSON(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == contentType
}

func fail(w http.ResponseWriter, status int, why string) {
	write(w, status, map[string]string{"error": why})
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // no value of ours
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// byName serves requests by a name of this contact point, or by one that look-ups show.
func byName(names localname.Names, found func(host string) bool, log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if names.Has(q.Host) || found(q.Host) {
			next.ServeHTTP(w, q)
			return
		}
		log.Debug("a request by another name was refused", "host", q.Host, "from", q.RemoteAddr)
		fail(w, http.StatusMisdirectedRequest, "this contact point does not answer as "+refuse.Called(q.Host)+
			": ask by an IP address, as localhost, or by its own name (Advertise, --contact-advertise)")
	})
}

// checked serves what mux does. Requests that no route is for, that cannot be read, or that would give a promise to a
// page in a browser, which sends no JSON unasked, are refused before.
func checked(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		status, why := refuse.Unrouted(mux, w, q)
		if status == 0 {
			status, why = refuse.Query(q)
		}
		switch {
		case status != 0:
		case q.Method != http.MethodPost:
			_, status, why = refuse.Body(w, q, maxBody)
		case !isJSON(q.Header):
			status, why = http.StatusUnsupportedMediaType, "the content type is "+
				refuse.Called(q.Header.Get("Content-Type"))+", "+contentType+" is wanted"
		}
		if status != 0 {
			w.Header().Set("Connection", "close")
			fail(w, status, why)
			return
		}
		mux.ServeHTTP(w, q)
	})
}

// unbelieved returns why what somebody answered is not believed, nil when it may be read.
func unbelieved(a *http.Response, body []byte) error {
	switch {
	case a.StatusCode != http.StatusOK:
		var said struct{ Error string }
		if !isJSON(a.Header) || json.Unmarshal(body, &said) != nil || said.Error == "" {
			return fmt.Errorf("%w: status %d", errFormat, a.StatusCode)
		}
		return fmt.Errorf("%w: status %d: %.200q", errFormat, a.StatusCode, said.Error)
	case !isJSON(a.Header):
		return fmt.Errorf("%w: its content type is %s, %s is wanted: does something else listen there?", errFormat,
			refuse.Called(a.Header.Get("Content-Type")), contentType)
	case len(body) > maxBody:
		return fmt.Errorf("%w: more than %d bytes", errFormat, maxBody)
	}
	return nil
}
