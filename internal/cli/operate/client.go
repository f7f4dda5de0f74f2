// One request to the admin interface of a running node, and its answer.

package operate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/cli"
)

// Asked are the flags that say which node is asked.
type Asked struct {
	Admin string `default:"127.0.0.1:7626" env:"KITH_ADMIN" help:"${admin_help}"`
	Believed
	TokenFile string        `type:"existingfile" env:"KITH_TOKEN_FILE" placeholder:"FILE" help:"${tokenfile_help}"`
	Timeout   time.Duration `default:"10s" help:"How long to wait for an answer."`
	JSON      bool          `name:"json" help:"Print the answer as the node gives it."`
}

// Validate is called by the parser.
func (f *Asked) Validate() error {
	var late error
	if f.Timeout <= 0 {
		late = errors.New("--timeout must be more than zero")
	}
	return errors.Join(late, interfaceAt("--admin", f.Admin))
}

// interfaceAt returns why an address is none of an admin interface, host:port or a URL, or nil.
func interfaceAt(flag, address string) error {
	u, err := url.Parse(address)
	if !strings.Contains(address, "://") {
		return cli.Address(flag, address)
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("%s: a URL with https is wanted, or host:port, not %.80q", flag, address)
	}
	return nil
}

// Bounds of what is read, in bytes.
const (
	maxAnswer = 4 << 20
	maxToken  = 4 << 10
)

var (
	// errAsked is wrapped by the error of a request that the node refused.
	errAsked = errors.New("the node refuses")
	// errForeign is wrapped by the error of an answer that no node gives.
	errForeign = errors.New("the answer is none of this interface")
	// errEnded is the error of an answer of which nothing came, or a part.
	errEnded = errors.New("the node ended while it answered: ask it again, or look at its log")
)

// unanswered begins the error of a request that got no answer.
const unanswered = "no answer of the admin interface (kith run --admin)"

// request sends one request and returns its answer, which is not an error of the node.
func (f *Asked) request(ctx context.Context, method, path string) (*http.Response, error) {
	return f.requestBody(ctx, method, path, "")
}

// requestBody is request with a body.
func (f *Asked) requestBody(ctx context.Context, method, path, body string) (*http.Response, error) {
	base := strings.TrimSuffix(f.url(f.Admin), "/")
	q, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if f.TokenFile != "" {
		token, err := files.Read(f.TokenFile, maxToken)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client, err := f.client()
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, f.unreached(err)
	}
	return a, nil
}

// unreached is the error of a request that failed before there was an answer.
func (f *Asked) unreached(err error) error {
	var (
		text  = err.Error()
		name  x509.HostnameError
		by    x509.UnknownAuthorityError
		other tls.RecordHeaderError
		more  string
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s speaks no TLS: ask it without --ca and --server-name, as http://", f.Admin)
	// The second is what net/http says when the answer came before the question.
	case strings.Contains(text, "malformed HTTP response"), strings.Contains(text, "readLoopPeekFail"),
		errors.As(err, &other):
		return fmt.Errorf("%s speaks no HTTP: is it the port of the node itself, and not that of its admin interface "+
			"(kith run --admin)?", f.Admin)
	case errors.As(err, &name):
		more = fmt.Sprintf("; it is the certificate of %q: is that the node that is meant (--ca and --server-name)?",
			name.Certificate.Subject.CommonName)
	case errors.As(err, &by) && f.CA == "":
		more = "; --ca=FILE names the authority"
	}
	return fmt.Errorf("%s: %w%s", unanswered, err, more)
}

// open asks for what is no JSON. Its answer is not an error of the node.
func (f *Asked) open(ctx context.Context, path string) (*http.Response, error) {
	a, err := f.request(ctx, "GET", path)
	if err != nil || a.StatusCode == http.StatusOK {
		return a, err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	return nil, f.refusal(a, body)
}

// refusal is the error of an answer with a status of an error.
func (f *Asked) refusal(a *http.Response, body []byte) error {
	var p struct{ Error string }
	if json.Unmarshal(body, &p) != nil || p.Error == "" {
		p.Error = a.Status
	}
	if a.StatusCode == http.StatusUnauthorized && f.TokenFile == "" {
		p.Error = "the token is missing: --token-file, or KITH_TOKEN_FILE"
	}
	if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) { // so the standard library answers
		return fmt.Errorf("this port speaks TLS: --admin=https://%s and --ca=FILE", strings.TrimPrefix(f.Admin, "http://"))
	}
	return fmt.Errorf("%w: %s%s", errAsked, cli.OneLine(p.Error), ran(body))
}

// ask sends a request, and decodes its answer into v; with --json it is printed as it came.
func (f *Asked) ask(to *Console, method, path string, v any) error {
	raw, err := f.send(method, path, v)
	if err == nil && f.JSON {
		_, err = to.Out.Write(raw)
	}
	return err
}

// get returns an answer as it came, and decodes it into v. A status in want is no refusal of the node.
func (f *Asked) get(path string, v any, want ...int) ([]byte, error) {
	return f.send("GET", path, v, want...)
}

func (f *Asked) send(method, path string, v any, want ...int) ([]byte, error) {
	return f.sendBody(method, path, "", v, want...)
}

// sendBody is send with a body.
func (f *Asked) sendBody(method, path, with string, v any, want ...int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), f.Timeout)
	defer cancel()
	a, err := f.requestBody(ctx, method, path, with)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errEnded
	case err != nil:
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if a.StatusCode/100 != 2 && !slices.Contains(want, a.StatusCode) {
		return nil, f.refusal(a, body)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, foreign(body, err)
	}
	return body, nil
}

// foreign is the error of an answer that cannot be decoded: it is no JSON, or not all of it came.
func foreign(body []byte, err error) error {
	var all json.RawMessage
	if cut := json.NewDecoder(bytes.NewReader(body)).Decode(&all); cut == io.EOF || cut == io.ErrUnexpectedEOF {
		return errEnded
	}
	return fmt.Errorf("%w: %w", errForeign, err)
}

// ran says whether a message that came to nothing may have been handled; nothing where the answer does not say.
func ran(body []byte) string {
	var a struct {
		MayHaveRun *bool `json:"may_have_run"`
	}
	switch err := json.Unmarshal(body, &a); {
	case err != nil || a.MayHaveRun == nil:
		return ""
	case *a.MayHaveRun:
		return "; a handler may have run"
	}
	return "; no handler has run"
}

// order sends a request that changes something, and prints what became of it.
func (f *Asked) order(to *Console, path string) error {
	var d struct{ Message string }
	if err := f.ask(to, "POST", path, &d); err != nil || f.JSON {
		return err
	}
	_, err := fmt.Fprintln(to.Out, cli.OneLine(d.Message))
	return err
}
