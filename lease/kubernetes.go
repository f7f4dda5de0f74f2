// Kubernetes: leases as objects of coordination.k8s.io, by plain HTTPS with a pod's service account.

package lease

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/base/kubeapi"
)

// KubernetesConfig says where the objects are. What is empty is found where a pod has it. The pod's service account
// must be allowed to get, create and update leases of coordination.k8s.io in the namespace.
type KubernetesConfig struct {
	// Namespace of the objects; empty: this pod's.
	Namespace string
	// TTL is how long a lease lasts after its owner's last word, in whole seconds, rounded up; zero means DefaultTTL.
	TTL time.Duration

	// APIServer is the URL of the API, https; empty: that of the environment (KUBERNETES_SERVICE_HOST and _PORT).
	APIServer string
	// Directory holds the files token, ca.crt and namespace; empty: the service account's. They are read with each
	// request, for they are replaced while the pod runs.
	Directory string
}

// Kubernetes keeps leases as Lease objects of a namespace. The time is that of the API server, in whole seconds, as its
// answers tell it. The clocks of several servers must agree better than a TTL is longer than what a lease is held for.
type Kubernetes struct {
	cfg   KubernetesConfig
	api   *kubeapi.API
	lock  sync.Mutex
	doubt map[[2]string]struct{} // name and owner: a write of this Acquire may still come to pass
}

// OpenKubernetes returns the leases of a namespace. It asks nobody: an API server that is away is an error of each
// call. Errors match ErrBadConfig.
func OpenKubernetes(cfg KubernetesConfig) (*Kubernetes, error) {
	ttl, err := CheckTTL(cfg.TTL)
	cfg.TTL = (ttl + time.Second - 1).Truncate(time.Second)
	api, err2 := kubeapi.New(cfg.APIServer, cfg.Directory)
	if err2 != nil {
		err2 = fmt.Errorf("%w: Kubernetes: %w", ErrBadConfig, err2)
	}
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &Kubernetes{cfg: cfg, api: api, doubt: map[[2]string]struct{}{}}, nil
}

// openKubernetes is OpenKubernetes by an address: kubernetes://namespace; without one, this pod's.
func openKubernetes(_ context.Context, a Address, ttl time.Duration) (Service, error) {
	cfg := KubernetesConfig{Namespace: a.Host, TTL: ttl, APIServer: a.Take("api-server"), Directory: a.Take("account")}
	err := a.Rest()
	if strings.Trim(a.Path, "/") != "" {
		err = errors.Join(err, errors.New("the address of a kubernetes lease names a namespace, as kubernetes://shop"))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	k, err := OpenKubernetes(cfg)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// TTL implements Service.
func (k *Kubernetes) TTL() time.Duration { return k.cfg.TTL }

// Close implements Service.
func (k *Kubernetes) Close() error {
	k.api.Close()
	return nil
}

// Annotations of the objects.
const (
	noteName  = "kith.io/lease" // the name of the lease, quoted
	noteWrite = "kith.io/write" // another text with each write: the API takes one that changes nothing for none
)

// object is a Lease; what others keep in its metadata stays.
type object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       spec           `json:"spec"`
}

type spec struct {
	HolderIdentity       string `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds int    `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          string `json:"acquireTime,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
	LeaseTransitions     int    `json:"leaseTransitions,omitempty"`
}

// microTime is how the API writes a time.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// maxObject bounds an answer about one lease.
const maxObject = 1 << 20

// maxDoubt bounds the owners that a Kubernetes keeps in mind because their last Acquire had no answer.
const maxDoubt = 1024

// objectName is the name of the object of a lease: a part that people know, and a part that no other name has.
func objectName(name string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	sum := sha256.Sum256([]byte(name))
	return "kith-" + slug[:min(len(slug), 40)] + "-" + hex.EncodeToString(sum[:8])
}

// identity is an owner as text of JSON; no two are the same.
func identity(owner string) string {
	if quoted := strconv.QuoteToASCII(owner); quoted != `"`+owner+`"` || owner[0] == '"' {
		return quoted
	}
	return owner
}

// seen is what was found of a lease; rev empty: there is no object.
type seen struct {
	object
	rev string
	now time.Time // by the server, not later than it is
}

// heldBy returns the owner of the lease, as identity writes it; empty: nobody has it, or it has ended.
func (s *seen) heldBy() string {
	if s.Spec.HolderIdentity == "" {
		return ""
	}
	renewed, _ := time.Parse(microTime, s.Spec.RenewTime) // check has read it
	if s.now.Before(renewed.Add(time.Duration(s.Spec.LeaseDurationSeconds) * time.Second)) {
		return s.Spec.HolderIdentity
	}
	return ""
}

// check returns an error where the object is none of ours.
func (s *seen) check(name string) error {
	notes, _ := s.Metadata["annotations"].(map[string]any)
	s.rev, _ = s.Metadata["resourceVersion"].(string)
	_, err := time.Parse(microTime, s.Spec.RenewTime)
	if s.Kind != "Lease" || s.rev == "" || notes[noteName] != strconv.QuoteToASCII(name) ||
		s.Spec.HolderIdentity != "" && (err != nil || s.Spec.LeaseDurationSeconds < 1) {
		return fmt.Errorf("%w: the object %s", ErrForeign, objectName(name))
	}
	return nil
}

// path is where the API has leases.
func (k *Kubernetes) path() (string, error) {
	namespace, err := k.api.Namespace(k.cfg.Namespace)
	return "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/leases", err
}

// get reads a lease.
func (k *Kubernetes) get(ctx context.Context, name string) (s seen, err error) {
	path, err := k.path()
	if err != nil {
		return s, err
	}
	a, err := k.api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Path: path + "/" + objectName(name), Most: maxObject})
	if code(err) == http.StatusNotFound {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if a.Date.IsZero() {
		return s, errors.New("the API server does not say what time it is")
	}
	if err := json.Unmarshal(a.Body, &s.object); err != nil {
		return s, fmt.Errorf("the answer is no lease: %w", err)
	}
	s.now = a.Date
	return s, s.check(name)
}

// put writes a lease in the place of what was seen, or makes it. It reports whether that was still so.
func (k *Kubernetes) put(ctx context.Context, name string, s seen) (done bool, err error) {
	path, err := k.path()
	if err != nil {
		return false, err
	}
	r := kubeapi.Request{Method: http.MethodPost, Path: path, Most: maxObject}
	if s.rev != "" {
		r.Method, r.Path = http.MethodPut, path+"/"+objectName(name)
	} else {
		s.Metadata = map[string]any{"name": objectName(name)}
	}
	s.APIVersion, s.Kind = "coordination.k8s.io/v1", "Lease"
	notes, _ := s.Metadata["annotations"].(map[string]any)
	if notes == nil {
		notes = map[string]any{}
		s.Metadata["annotations"] = notes
	}
	notes[noteName], notes[noteWrite] = strconv.QuoteToASCII(name), rand.Text()
	if r.Body, err = json.Marshal(s.object); err != nil {
		return false, err
	}
	_, err = k.api.Do(ctx, r)
	if c := code(err); c == http.StatusConflict || c == http.StatusNotFound && s.rev != "" {
		return false, nil
	}
	return err == nil, err
}

// code is the status by which the API refused; zero: it did not.
func code(err error) int {
	if r := (*kubeapi.Refused)(nil); errors.As(err, &r) {
		return r.Code
	}
	return 0
}

// told returns an error as callers get it.
func told(err error) error {
	switch c := code(err); {
	case err == nil:
		return nil
	case c == http.StatusUnauthorized, c == http.StatusForbidden:
		err = fmt.Errorf("%w: may the service account get, create and update leases here?", err)
	case c == http.StatusNotFound:
		err = fmt.Errorf("%w: is there such a namespace?", err)
	}
	return fmt.Errorf("lease: kubernetes: %w", err)
}

// Acquire implements Service.
func (k *Kubernetes) Acquire(ctx context.Context, name, owner string) (bool, error) {
	if err := CheckName(name, owner); err != nil {
		return false, err
	}
	ctx, cancel := Bound(ctx)
	defer cancel()
	for {
		s, err := k.get(ctx, name)
		if err != nil {
			return false, told(err)
		}
		if s.rev == "" { // an object first: its answer says what time it is
			if _, err := k.put(ctx, name, s); err != nil {
				return false, told(err)
			}
			continue
		}
		is := s.heldBy()
		if is != "" && is != identity(owner) {
			return false, nil
		}
		now := s.now.Add(time.Second).UTC().Format(microTime) // not earlier than it is
		if is == "" {
			s.Spec.AcquireTime = now
			s.Spec.LeaseTransitions++
		}
		s.Spec.HolderIdentity, s.Spec.RenewTime = identity(owner), now
		s.Spec.LeaseDurationSeconds = int(k.cfg.TTL / time.Second)
		k.doubts(name, owner, true)
		done, err := k.put(ctx, name, s)
		if c := code(err); err == nil || c >= 400 && c < 500 {
			k.doubts(name, owner, false)
		}
		if done || err != nil {
			return done, told(err)
		}
	}
}

// doubts notes whether a write for an owner may still come to pass.
func (k *Kubernetes) doubts(name, owner string, is bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	delete(k.doubt, [2]string{name, owner})
	if !is {
		return
	}
	for old := range k.doubt {
		if len(k.doubt) < maxDoubt {
			break
		}
		delete(k.doubt, old) // what it left ends by its TTL
	}
	k.doubt[[2]string{name, owner}] = struct{}{}
}

func (k *Kubernetes) doubted(name, owner string) bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	_, is := k.doubt[[2]string{name, owner}]
	return is
}

// Release implements Service. Where an Acquire had no answer, the object is written anew whatever owner has it: the
// write that is under way finds another version, and changes nothing.
func (k *Kubernetes) Release(ctx context.Context, name, owner string) error {
	if err := CheckName(name, owner); err != nil {
		return err
	}
	ctx, cancel := Bound(ctx)
	defer cancel()
	for {
		s, err := k.get(ctx, name)
		if err != nil {
			return told(err)
		}
		mine := s.Spec.HolderIdentity == identity(owner)
		if !mine && !k.doubted(name, owner) {
			return nil
		}
		if mine {
			s.Spec.HolderIdentity = ""
		}
		done, err := k.put(ctx, name, s)
		if err != nil {
			return told(err)
		}
		if done {
			k.doubts(name, owner, false)
			return nil
		}
	}
}
