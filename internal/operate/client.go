// One request to the admin interface of a running node, and its answer.

package operate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// Asked are the flags that say which node is asked.
type Asked struct {
	Admin     string        `default:"127.0.0.1:7626" env:"KITH_ADMIN" help:"${admin_help}"`
	CA        string        `name:"ca" type:"existingfile" placeholder:"FILE" help:"${adminca_help}"`
	TokenFile string        `type:"existingfile" env:"KITH_TOKEN_FILE" placeholder:"FILE" help:"${tokenfile_help}"`
	Timeout   time.Duration `default:"10s" help:"How long to wait for an answer."`
	JSON      bool          `name:"json" help:"Print the answer as the node gives it."`
}

// Validate is called by the parser.
func (f *Asked) Validate() error {
	if f.Timeout <= 0 {
		return errors.New("--timeout must be more than zero")
	}
	return nil
}

// errAsked is wrapped by the error of a request that the node refused.
var errAsked = errors.New("the node refuses")

// request sends one request and returns its answer, which is not an error of the node.
func (f *Asked) request(ctx context.Context, method, path string) (*http.Response, error) {
	base := f.Admin
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	q, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if f.TokenFile != "" {
		token, err := os.ReadFile(f.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client, err := clientFor(f.CA)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("no answer of the admin interface (kith run --admin): %w", err)
	}
	return a, nil
}

// ask sends a request, and decodes its answer into v; with --json it is printed as it came. An answer in want is none
// that the node refuses.
func (f *Asked) ask(to *Console, method, path string, v any, want ...int) error {
	ctx, cancel := context.WithTimeout(context.Background(), f.Timeout)
	defer cancel()
	a, err := f.request(ctx, method, path)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if a.StatusCode/100 != 2 && !slices.Contains(want, a.StatusCode) {
		var p struct{ Error string }
		if json.Unmarshal(body, &p) != nil || p.Error == "" {
			p.Error = a.Status
		}
		return fmt.Errorf("%w: %s", errAsked, p.Error)
	}
	if f.JSON {
		_, err := to.Out.Write(body)
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("the answer is none of this interface: %w", err)
	}
	return nil
}

// order sends a request that changes something, and prints what became of it.
func (f *Asked) order(to *Console, path string) error {
	var d struct{ Message string }
	if err := f.ask(to, "POST", path, &d); err != nil || f.JSON {
		return err
	}
	_, err := fmt.Fprintln(to.Out, d.Message)
	return err
}

// clientFor returns a client of HTTP that believes the authority of a file, or with none those of the machine.
func clientFor(ca string) (*http.Client, error) {
	if ca == "" {
		return &http.Client{}, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}
