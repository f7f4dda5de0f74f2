// Remote: another node's admin interface as a source of snapshots and reports.

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer bounds what is read of another interface's answer, in bytes.
const maxAnswer = 4 << 20

var errAnswer = errors.New("no answer of an admin interface")

// remote is a node that is asked over HTTP. Nothing that it says is believed beyond what it says of itself.
type remote struct {
	base   string // without a slash at its end
	client *http.Client
}

func (r *remote) look(ctx context.Context) (*snapshot, error) {
	s := &snapshot{}
	if err := r.get(ctx, "/v1/snapshot", s); err != nil {
		return nil, err
	}
	s.bound()
	return s, nil
}

func (r *remote) report(ctx context.Context, name string) (*report, error) {
	out := &report{}
	return out, r.get(ctx, "/v1/types/"+url.PathEscape(name)+"?timeout="+surveyTime.String(), out)
}

// get decodes the answer to one request into v.
func (r *remote) get(ctx context.Context, path string, v any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+path, nil)
	if err != nil {
		return err
	}
	a, err := r.client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errAnswer, err)
	case a.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: it says %s", errAnswer, a.Status)
	case len(body) > maxAnswer:
		return fmt.Errorf("%w: it is longer than %d bytes", errAnswer, maxAnswer)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	return nil
}

// bound cuts what is longer than a snapshot of ours would be.
func (s *snapshot) bound() {
	cut(&s.Members.Members, maxMembers)
	cut(&s.Held.Blockers, maxMembers)
	cut(&s.Peers.Peers, maxPeers)
	cut(&s.Types, maxTypes)
	cut(&s.Decisions, maxDecisions)
	cut(&s.Events, maxHistory)
	if s.Rates != nil {
		cut(&s.Rates.Times, maxTimes)
	}
}

func cut[T any](list *[]T, n int) { *list = (*list)[:min(len(*list), n)] }

// noRedirect is a client that goes where it was sent and nowhere else.
func noRedirect(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// baseOf is the address of an admin interface as a URL.
func baseOf(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("%q is no address of an admin interface: host:port, or a URL with https", text)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}
