// Tests of what a verb says of a server that does not answer, ends while it does, or is none of kith's (ADM-1).

package operate

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serving answers every request with a status, a type of content and a body, and returns how to ask.
func serving(t *testing.T, status int, kind, body string) Asked {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return Asked{Admin: s.URL, Timeout: time.Minute}
}

// A node that is stopped, and a port that says nothing, hold up no verb for longer than --timeout: the stream of events
// waits so for its headers, and for the first event.
func TestEventsOfANodeThatSaysNothing(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	over := make(chan struct{})
	headers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": alive\n\n")
		w.(http.Flusher).Flush()
		<-over
	}))
	defer headers.Close()
	defer close(over)
	for _, at := range []string{silent.Addr().String(), headers.URL} {
		c := Events{Asked: Asked{Admin: at, Timeout: 20 * time.Millisecond}}
		err := c.Run(&Console{Out: io.Discard})
		require.EqualError(t, err, "no answer of the admin interface (kith run --admin) within 20ms")
	}
}

// With its first event a stream has begun, and goes on for longer than --timeout.
func TestEventsOutlastTheirTimeout(t *testing.T) {
	began, stopped := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"text\":\"one\"}\n\n")
		w.(http.Flusher).Flush()
		<-stopped
		_, _ = io.WriteString(w, "data: {\"text\":\"two\"}\n\n")
	}))
	defer s.Close()
	var out bytes.Buffer
	c := Events{Asked: Asked{Admin: s.URL, Timeout: time.Minute}}
	ctx := t.Context()
	over := make(chan error, 1)
	go func() { over <- c.follow(ctx, &Console{Out: &out}, func() { began <- struct{}{} }) }()
	<-began
	close(stopped)
	<-began
	require.NoError(t, <-over)
	require.Equal(t, "-  one\n-  two\n", out.String())
}

// Another web server is no node: no verb takes what it says for an answer, and flight-record writes none of it.
func TestAnotherWebServer(t *testing.T) {
	page := serving(t, http.StatusOK, "text/html", "<html><body>It works!</body></html>")
	file := filepath.Join(t.TempDir(), "record")
	for name, run := range map[string]func(*Console) error{
		"status":        (&Status{Asked: page}).Run,
		"events":        (&Events{Asked: page}).Run,
		"flight-record": (&Flight{Asked: page, File: file}).Run,
	} {
		var out bytes.Buffer
		require.ErrorIs(t, run(&Console{Out: &out}), errForeign, name)
		require.Empty(t, out.String())
	}
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Empty(t, left)
	other := serving(t, http.StatusOK, "text/plain; version=0.0.4", "# TYPE up gauge\nup 1\n")
	require.ErrorIs(t, (&Top{Asked: other, Every: time.Second, Rounds: 1}).Run(&Console{Out: io.Discard}), errForeign)
}

// An answer of which nothing came, or the beginning, is that of a node that has ended, whatever was asked.
func TestNodeThatEndsWhileItAnswers(t *testing.T) {
	for _, body := range []string{"", "\n", `{"types":[{"na`, `{"state":"ready"`} {
		cut := serving(t, http.StatusOK, "application/json", body)
		for _, run := range []func(*Console) error{(&Explain{cut}).Run, (&Shards{Asked: cut}).Run, (&Status{cut}).Run} {
			require.ErrorIs(t, run(&Console{Out: io.Discard}), errEnded, "%q", body)
		}
	}
	nothing := serving(t, http.StatusOK, "application/octet-stream", "")
	flight := Flight{Asked: nothing, File: filepath.Join(t.TempDir(), "record")}
	require.ErrorIs(t, flight.Run(&Console{Out: io.Discard}), errEnded)
	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"state":`)
	}))
	defer short.Close()
	status := Status{Asked{Admin: short.URL, Timeout: time.Minute}}
	require.ErrorIs(t, status.Run(&Console{Out: io.Discard}), errEnded)
}

// full is a device without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// top ends when nobody gets what it prints.
func TestTopWithoutOutput(t *testing.T) {
	node := serving(t, http.StatusOK, "text/plain; version=0.0.4",
		"# TYPE kith_state gauge\nkith_state{state=\"ready\"} 1\n")
	for _, json := range []bool{false, true} {
		node.JSON = json
		top := Top{Asked: node, Every: 100 * time.Millisecond}
		require.ErrorContains(t, top.Run(&Console{Out: full{}, Clear: func() {}}), "no space left")
	}
}
