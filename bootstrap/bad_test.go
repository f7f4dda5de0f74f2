// Tests of bad input: what a contact point refuses, and what a node does not believe of others (BOOT-2, SEC-1, SEC-5).

package bootstrap

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/internal/base/pki"
)

// website is a server at which every request has the same answer; it returns its address.
func website(t *testing.T, contentType, body string) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

const (
	anAsk = `{"format":1,"cluster":"kith","node":"a:1","incarnation":"1","contact":"a:1","attempt":1,"wants":true}`
	aJSON = "application/json"
)

// asked is a request to a contact point.
type asked struct {
	method, path, host, contentType string
	body                            io.Reader
}

// answer sends a request, demands an answer of that status that says why, and returns that and its header.
func (a asked) answer(t *testing.T, b *Bootstrap, want int) (string, http.Header) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), a.method, "http://"+b.ContactPoint()+a.path, a.body)
	require.NoError(t, err)
	q.Host = a.host
	if a.contentType != "" {
		q.Header.Set("Content-Type", a.contentType)
	}
	r, err := (&http.Client{Timeout: 20 * time.Second}).Do(q)
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, want, r.StatusCode, "%+v: %s", a, text)
	require.Equal(t, aJSON, r.Header.Get("Content-Type"), "%+v", a)
	var why map[string]string
	if want != http.StatusOK {
		require.NoError(t, json.Unmarshal(text, &why), "%+v: %s", a, text)
		require.Len(t, why, 1)
		require.NotEmpty(t, why["error"], "%+v", a)
	}
	return why["error"], r.Header
}

// Every route refuses every other method, another's name, a query and a body that cannot be read, and a body that is
// too large; a promise is given only to JSON, which no page in a browser sends unasked. All say why; nothing changes.
func TestBadRequestsToContactPoint(t *testing.T) {
	k := &known{}
	b := begun(t, k, kith.Config{}, Config{Expected: 2})
	large := func() io.Reader { return strings.NewReader(strings.Repeat(" ", maxBody+1)) }
	for path, method := range map[string]string{contactPath: "GET", explainPath: "GET", promisePath: "POST"} {
		for _, other := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if other != method {
				_, head := asked{method: other, path: path}.answer(t, b, 405)
				require.Contains(t, head.Get("Allow"), method)
			}
		}
		for _, host := range []string{"evil.example", "evil.example:7627", "127.0.0.1.evil.example"} {
			why, _ := asked{method, path, host, aJSON, strings.NewReader(anAsk)}.answer(t, b, 421)
			require.Contains(t, why, "evil.example")
		}
		for _, query := range []string{"?a=%zz", "?a;b", "?%"} {
			asked{method, path + query, "", aJSON, strings.NewReader(anAsk)}.answer(t, b, 400)
		}
		asked{method, path, "", aJSON, large()}.answer(t, b, 413)
		why, _ := asked{method, path, "", aJSON, io.MultiReader(large())}.answer(t, b, 413)
		require.Contains(t, why, "16384")
	}
	for _, bad := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x/y/z",
		"application/json2", "text/json"} {
		why, _ := asked{"POST", promisePath, "", bad, strings.NewReader(anAsk)}.answer(t, b, 415)
		require.Contains(t, why, "application/json")
	}
	for _, path := range []string{"/", "/bootstrap/v1", "/bootstrap/v1/nothing", contactPath + "/"} {
		asked{method: "GET", path: path}.answer(t, b, 404)
	}
	require.Contains(t, torn(t, b), "400", "a body that breaks off")
	require.True(t, b.Explain().Promised.IsZero(), "nothing has changed")
	asked{"POST", promisePath, "", "Application/JSON; charset=utf-8", strings.NewReader(anAsk)}.answer(t, b, 200)
	require.Equal(t, "a:1#1", b.Explain().Promised.String())
}

// torn sends a body that breaks off, and returns the first line of the answer.
func torn(t *testing.T, b *Bootstrap) string {
	t.Helper()
	c, err := net.Dial("tcp", b.ContactPoint())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "POST "+promisePath+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: 500\r\n\r\n{")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\r\n")
	return line
}

// Without TLS on loopback a contact point answers to addresses, to localhost, to its own names, and to those that
// look-ups show; no page of somebody else's name reads or changes anything there.
func TestNamesOfContactPoint(t *testing.T) {
	k := &known{}
	b := begun(t, k, kith.Config{Advertise: "n1.test:7355"}, Config{Expected: 2, Advertise: "c1.test:7627"})
	ask := func(host string) int {
		w, q := httptest.NewRecorder(), httptest.NewRequest("GET", contactPath, nil)
		q.Host = host
		b.server.Handler.ServeHTTP(w, q)
		return w.Code
	}
	for host, want := range map[string]int{"127.0.0.1:7627": 200, "[::1]:1": 200, "localhost": 200, "c1.test:7627": 200,
		"n1.test": 200, "C1.TEST.": 200, "listed.test": 421, "evil.test": 421} {
		require.Equal(t, want, ask(host), host)
	}
	k.add(t, "listed.test:7627")
	require.Eventually(t, func() bool { return ask("listed.test:80") == 200 }, 2*time.Minute, 5*time.Millisecond)
	require.Equal(t, 421, ask("evil.test"))
	own := httptest.NewRecorder()
	b.Handler().ServeHTTP(own, httptest.NewRequest("GET", "http://evil.test"+contactPath, nil))
	require.Equal(t, 200, own.Code, "in a program's own server names are the program's")
}

// An answer that is not JSON by its own word is not believed, whatever it says; nor is a refusal. Why stands in the
// explanation, beside the contact point and in what the node waits for.
func TestOnlyJSONIsBelieved(t *testing.T) {
	k := &known{}
	good := `{"format":1,"cluster":"kith","node":"127.0.0.1:9","incarnation":"a","wire":"1-6","cluster_id":"5",` +
		`"seeds":["127.0.0.1:9"]}`
	want := map[string]string{
		website(t, "text/html; charset=utf-8", good):              `its content type is "text/html; charset=utf-8"`,
		website(t, "", good):                                      `its content type is ""`,
		website(t, "application/"+strings.Repeat("x", 900), good): `its content type is "application/xxx`,
		website(t, aJSON, "<html>"):                               "invalid character",
	}
	for point := range want {
		k.add(t, point)
	}
	b := begun(t, k, kith.Config{}, Config{Required: 1})
	k.add(t, b.ContactPoint())
	require.Eventually(t, func() bool {
		e := b.Explain()
		for _, p := range e.Points {
			if why := want[p.Point.String()]; !strings.Contains(p.Failed, why) || (p.Failed == "") != (why == "") {
				return false
			}
		}
		return len(e.Points) == 5 && e.Hold == formation.HoldSilent
	}, 2*time.Minute, 5*time.Millisecond)
	e := b.Explain()
	for point, why := range want {
		require.Contains(t, e.Detail, point)
		require.Contains(t, e.Detail, why)
	}
	require.Less(t, len(e.Detail), 4*(maxWhy+50), "and not all of what others say")
	require.Zero(t, b.Node().View().ClusterID)
}

// Connections that say nothing, far more than there may be, keep no newcomer out of the contact point, though they come
// from its own address (SEC-1).
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	k := &known{}
	b := begun(t, k, kith.Config{}, Config{Expected: 2})
	for n := range 3 * maxConns {
		c, err := net.Dial("tcp", b.ContactPoint())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		if n%2 == 1 { // slow ones among them
			_, err = io.WriteString(c, "GET ")
			require.NoError(t, err)
		}
		if n%maxConns == maxConns-1 {
			require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+contactPath, nil))
		}
	}
	require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+contactPath, nil))
}

// What a stranger may show before it has proven anything is bounded at a contact point with TLS too: a tangle of many
// certificates is not even read, and one of few is looked at no further than its length (SEC-1).
func TestChainsAtTheContactPoint(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, pki.ThrowAway(dir, []string{kith.ClusterURI("kith")}, []string{"127.0.0.1"}, "n"))
	cert, key := pki.Paths(dir, "n")
	k := &known{}
	b := begun(t, k, kith.Config{TLS: kith.TLS{CertFile: cert, KeyFile: key,
		CAFile: filepath.Join(dir, pki.CAName+pki.CertSuffix)}}, Config{Expected: 2})
	own, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	for n, want := range map[int]bool{0: true, 4: false, 10: false, 100: false} {
		shown := own
		if n > 0 {
			shown, err = pki.Tangle(n)
			require.NoError(t, err)
		}
		c, err := tls.Dial("tcp", b.ContactPoint(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, "GET "+contactPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer := make([]byte, 12)
		got, _ := io.ReadFull(c, answer)
		require.Equal(t, want, string(answer[:got]) == "HTTP/1.1 200", "%d certificates", n)
	}
}
