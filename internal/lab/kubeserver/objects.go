//go:build linux

// Objects: what a test asks the server for, as one that may do everything, and accounts that may do less.

package kubeserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Request is what is asked. Method GET, and JSON, unless it says otherwise.
type Request struct {
	Method, Path string
	Type         string // of the body
	Body         []byte
}

// Answer is what the server says, whether it refuses or not.
type Answer struct {
	Code int
	Body []byte
}

// Do asks.
func (s *Server) Do(ctx context.Context, r Request) (Answer, error) {
	q, err := http.NewRequestWithContext(ctx, r.Method, s.URL()+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return Answer{}, err
	}
	q.Header.Set("Authorization", "Bearer "+s.token)
	if q.Header.Set("Content-Type", r.Type); r.Type == "" {
		q.Header.Set("Content-Type", "application/json")
	}
	got, err := s.client.Do(q)
	if err != nil {
		return Answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return Answer{got.StatusCode, body}, err
}

// Must is Do for what the server has to carry out: a refusal is an error.
func (s *Server) Must(ctx context.Context, r Request) ([]byte, error) {
	a, err := s.Do(ctx, r)
	if err == nil && a.Code/100 != 2 {
		err = fmt.Errorf("%s %s: the API server answers %d: %s", r.Method, r.Path, a.Code, a.Body)
	}
	return a.Body, err
}

// Delete removes an object, or all of a kind.
func (s *Server) Delete(ctx context.Context, path string) error {
	_, err := s.Must(ctx, Request{Method: http.MethodDelete, Path: path})
	return err
}

// Namespace makes one, with the account that pods have there that name none.
func (s *Server) Namespace(ctx context.Context, name string) error {
	_, err := s.Must(ctx, Request{Method: http.MethodPost, Path: "/api/v1/namespaces",
		Body: fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name)})
	if err != nil {
		return err
	}
	return s.Apply(ctx, name, "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: default\n")
}

// kinds says where the objects of a manifest go.
var kinds = map[string]string{
	"ServiceAccount":      "/api/v1/namespaces/%s/serviceaccounts",
	"Service":             "/api/v1/namespaces/%s/services",
	"Role":                "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles",
	"RoleBinding":         "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings",
	"StatefulSet":         "/apis/apps/v1/namespaces/%s/statefulsets",
	"PodDisruptionBudget": "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
	"NetworkPolicy":       "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies",
}

// Apply makes the objects of a manifest in a namespace. A field that the server does not know is an error.
func (s *Server) Apply(ctx context.Context, namespace, manifest string) error {
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		kind := ""
		for line := range strings.Lines(text) {
			if is, ok := strings.CutPrefix(line, "kind: "); ok {
				kind = strings.TrimSpace(is)
			}
		}
		where, ok := kinds[kind]
		if !ok {
			return fmt.Errorf("nobody says where objects of kind %q go", kind)
		}
		_, err := s.Must(ctx, Request{Method: http.MethodPost, Type: "application/yaml", Body: []byte(text),
			Path: fmt.Sprintf(where, namespace) + "?fieldValidation=Strict"})
		if err != nil {
			return err
		}
	}
	return nil
}

// Token returns a new token of a service account, as a kubelet asks for one for a pod. It holds for an hour.
func (s *Server) Token(ctx context.Context, namespace, account string) (string, error) {
	body, err := s.Must(ctx, Request{Method: http.MethodPost,
		Path: "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + account + "/token",
		Body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`)})
	var got struct{ Status struct{ Token string } }
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	return got.Status.Token, err
}

// Mount writes into a folder what a pod of a service account finds in its own: token, ca.crt and namespace, as links to
// files of a version that a link names, which a kubelet moves to the next version. A token that is given is the
// account's; else it gets a new one.
func (s *Server) Mount(ctx context.Context, dir, namespace, account, token string) (err error) {
	if token == "" {
		token, err = s.Token(ctx, namespace, account)
	}
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(s.file("ca.crt"))
	if err != nil {
		return err
	}
	version, err := os.MkdirTemp(dir, "..version")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"token": token, "ca.crt": string(ca), "namespace": namespace} {
		if err := os.WriteFile(filepath.Join(version, name), []byte(text), 0o600); err != nil {
			return err
		}
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dir, "..data"))
}
