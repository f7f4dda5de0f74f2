// Tests of what is refused before a route sees it.

package refuse

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// failing is a body that breaks off with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Bodies are read to their bound and not beyond, whether their length is known or not, and each failure has its status.
func TestBody(t *testing.T) {
	for _, c := range []struct {
		body   io.Reader
		status int
		why    string
	}{
		{nil, 0, ""}, {strings.NewReader("12345678"), 0, ""}, {io.MultiReader(strings.NewReader("12345678")), 0, ""},
		{strings.NewReader("123456789"), 413, "larger than 8 bytes"},
		{io.MultiReader(strings.NewReader("123456789")), 413, "larger than 8 bytes"},
		{failing{io.ErrUnexpectedEOF}, 400, "cannot be read"}, {failing{os.ErrDeadlineExceeded}, 408, "in time"},
	} {
		body, status, why := Body(httptest.NewRecorder(), httptest.NewRequest("POST", "/", c.body), 8)
		require.Equal(t, c.status, status)
		require.Contains(t, why, c.why)
		require.Equal(t, status == 0 && c.body != nil, len(body) == 8)
	}
}

// Queries that cannot be read are refused; those that are only odd are not.
func TestQuery(t *testing.T) {
	for query, want := range map[string]int{"": 0, "a=1&a=2": 0, "&&": 0, "a=%zz": 400, "a;b": 400, "%": 400} {
		q := httptest.NewRequest("GET", "/", nil)
		q.URL.RawQuery = query
		status, why := Query(q)
		require.Equal(t, want, status, query)
		require.Equal(t, want == 0, why == "", query)
	}
}

// What mux has no route for is said with its status and in one form, without what the request called it as it stands.
func TestUnrouted(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a/", func(http.ResponseWriter, *http.Request) {})
	for request, want := range map[string]int{"GET /a/": 0, "HEAD /a/b": 0, "GET /a": 0, "POST /a/": 405, "GET /b": 404,
		"GET /" + strings.Repeat("x", 500): 404, "GET /%1b%5b2J": 404} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		status, why := Unrouted(mux, w, httptest.NewRequest(method, path, nil))
		require.Equal(t, want, status, request)
		require.Equal(t, want == 0, why == "", request)
		require.Less(t, len(why), 2*maxCalled)
		require.NotContains(t, why, "\x1b")
		require.Equal(t, want == 405, w.Header().Get("Allow") != "", request)
	}
}
