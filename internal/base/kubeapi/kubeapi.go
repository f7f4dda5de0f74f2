// Package kubeapi asks the API of the Kubernetes cluster that a pod runs in, with what the pod's service account gives
// it. It needs no client library.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/base/files"
)

// serviceAccount is where a pod finds what it proves itself with.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Bounds of what the API says of a refusal, and of what is read from files.
const (
	maxErrorBody  = 4 << 10
	maxSecretFile = 1 << 20
	maxShown      = 80
)

// API is the API of one cluster. All methods are safe for concurrent use.
type API struct {
	server, dir string
	lock        sync.Mutex
	ca          []byte // that client believes
	client      *http.Client
}

// New returns the API at a URL, https; empty: that of the environment (KUBERNETES_SERVICE_HOST and _PORT). dir holds
// the files token, ca.crt and namespace; empty: the service account's. They are read with each request, for they are
// replaced while the pod runs.
func New(server, dir string) (*API, error) {
	var errs []error
	if dir == "" {
		dir = serviceAccount
	}
	if server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			errs = append(errs, errors.New("no API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"))
		}
		server = "https://" + net.JoinHostPort(host, port)
	}
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		errs = append(errs, fmt.Errorf("the API server %q is no https URL: a token goes there", Cut(server)))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &API{server: strings.TrimSuffix(server, "/"), dir: dir}, nil
}

// Cut shortens a text of somebody else's that an error shows.
func Cut(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "..."
	}
	return s
}

// Refused is an answer of the API that is no success.
type Refused struct {
	Code int
	Why  string // quoted, or empty
}

// Error says it in one line.
func (r *Refused) Error() string { return fmt.Sprintf("the API answers %d%s", r.Code, r.Why) }

// Request is what is asked.
type Request struct {
	Method string
	Path   string // below the server, escaped
	Query  url.Values
	Body   []byte // JSON; nil: none
	Most   int64  // bytes of the answer
}

// Answer is a success.
type Answer struct {
	Body []byte
	Date time.Time // by the clock of the server that answered, in whole seconds; zero: it does not say
}

// Do asks. Errors: *Refused for an answer that is no success; all others mean that nothing is known of the request.
func (a *API) Do(ctx context.Context, r Request) (Answer, error) {
	q, err := a.request(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	client, err := a.connect()
	if err != nil {
		return Answer{}, err
	}
	got, err := client.Do(q)
	if err != nil {
		return Answer{}, err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK && got.StatusCode != http.StatusCreated {
		return Answer{}, refusal(got)
	}
	body, err := io.ReadAll(io.LimitReader(got.Body, r.Most+1))
	switch {
	case err != nil:
		return Answer{}, err
	case int64(len(body)) > r.Most:
		return Answer{}, fmt.Errorf("the answer has more than %d bytes", r.Most)
	}
	at, _ := http.ParseTime(got.Header.Get("Date")) // zero where it does not say
	return Answer{Body: body, Date: at}, nil
}

// request makes it, with the token as it is now.
func (a *API) request(ctx context.Context, r Request) (*http.Request, error) {
	token, err := a.secret("token")
	if err != nil {
		return nil, err
	}
	where := a.server + r.Path
	if len(r.Query) > 0 {
		where += "?" + r.Query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	q, err := http.NewRequestWithContext(ctx, r.Method, where, body)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	q.Header.Set("Accept", "application/json")
	if r.Body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	return q, nil
}

// Namespace returns the one that is given, or this pod's where that is empty.
func (a *API) Namespace(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	text, err := a.secret("namespace")
	return strings.TrimSpace(string(text)), err
}

// secret reads one of the files of the service account.
func (a *API) secret(name string) ([]byte, error) {
	at := filepath.Join(a.dir, name)
	text, err := files.Read(at, maxSecretFile)
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty", at)
	}
	return text, err
}

// connect returns a client that believes the authority as it is now.
func (a *API) connect() (*http.Client, error) {
	ca, err := a.secret("ca.crt")
	if err != nil {
		return nil, err
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.client != nil && bytes.Equal(ca, a.ca) {
		return a.client, nil
	}
	certs, err := files.Certificates(ca)
	if err != nil {
		return nil, fmt.Errorf("ca.crt: %w", err)
	}
	pool := x509.NewCertPool()
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	a.ca, a.client = ca, &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 1},
		// The token is for the API alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a.client, nil
}

// Close closes the connections that nobody uses.
func (a *API) Close() {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
}

// refusal reads why the API refuses.
func refusal(a *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(a.Body, maxErrorBody)) // a part is better than nothing
	var status struct{ Message string }
	r := &Refused{Code: a.StatusCode}
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		r.Why = fmt.Sprintf(": %q", status.Message)
	}
	return r
}
