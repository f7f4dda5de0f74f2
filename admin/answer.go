// Answers: how they and errors are written.

package admin

import (
	"encoding"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/refuse"
)

// say writes an answer as JSON.
func say(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // no value of ours
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// problem is the answer to a request that failed.
type problem struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, why string) { say(w, status, problem{why}) }

// called is what a request has called something, as an answer repeats it.
func called(name string) string { return refuse.Called(name) }

// failed answers with an error of the node.
func failed(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, kith.ErrUnknownMember):
		status = http.StatusNotFound
	case errors.Is(err, kith.ErrBadConfig):
		status = http.StatusBadRequest
	case errors.Is(err, kith.ErrNotMember), errors.Is(err, kith.ErrNobodyUp), errors.Is(err, kith.ErrNobodyTakes),
		errors.Is(err, kith.ErrDrainCancelled), errors.Is(err, kith.ErrLeaving), errors.Is(err, kith.ErrNoRefound):
		status = http.StatusConflict
	}
	fail(w, status, err.Error())
}

// done is the answer to what was taken.
type done struct {
	Message string `json:"message"`
}

// spelled returns a value for encoding/json in the spelling of this interface: fields in snake case, a duration in
// seconds under a name that ends in _s, a moment by RFC 3339, none where there was none. Fields of embedded structs
// stand among those around them. It reads exported fields of structs, slices and maps with names; nothing in it refers
// to itself.
func spelled(v any) any { return spell(reflect.ValueOf(v)) }

func spell(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return spell(v.Elem())
	case reflect.Struct:
		if said, is := v.Interface().(encoding.TextMarshaler); is {
			return said
		}
		out := map[string]any{}
		spellFields(v, out)
		return out
	case reflect.Slice, reflect.Array:
		if said, is := v.Interface().(encoding.TextMarshaler); is {
			return said
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = spell(v.Index(i))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMap(reflect.MapOf(v.Type().Key(), reflect.TypeFor[any]()))
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, reflect.ValueOf(spell(v.MapIndex(key))))
		}
		return out.Interface()
	}
	return v.Interface()
}

func spellFields(v reflect.Value, out map[string]any) {
	for i := range v.NumField() {
		f, name := v.Type().Field(i), snake(v.Type().Field(i).Name)
		switch value := v.Field(i); {
		case f.Anonymous && value.Kind() == reflect.Struct:
			spellFields(value, out)
		case !f.IsExported():
		case f.Type == reflect.TypeFor[time.Duration]():
			out[name+"_s"] = value.Interface().(time.Duration).Seconds()
		case f.Type == reflect.TypeFor[time.Time]():
			if at := value.Interface().(time.Time); !at.IsZero() {
				out[name] = at.UTC()
			}
		default:
			out[name] = spell(value)
		}
	}
}

// snake returns a name of Go in snake case: TLSReloads is tls_reloads, StaleCRLs is stale_crls.
func snake(name string) string {
	r := []rune(strings.ReplaceAll(name, "CRLs", "Crls"))
	var b strings.Builder
	for i, c := range r {
		begins := i > 0 && unicode.IsUpper(c) &&
			(!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
