// Package service runs a program with a node from its start to its exit code in one call: signals, the search for a
// cluster, the admin interface with metrics and latencies, readiness, and a leave in order. kith run is such a program.
//
//	func main() {
//		service.Main(service.Config{Node: kith.Config{Name: "shop"}}, func(ctx context.Context, n *kith.Node) error {
//			_, err := n.Register(orders)
//			return err
//		})
//	}
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/metrics"
)

// Config says what is run. The zero value is a cluster of one on a free port of loopback, and nothing else is open.
type Config struct {
	// Node is the configuration of the node, and of each that follows it. Its Latency is called beside what the admin
	// interface and the metrics record.
	Node kith.Config
	// Bootstrap finds the cluster, and opens the contact point; Node must have no Seeds then. Nil: Node.Seeds do.
	Bootstrap *bootstrap.Config
	// Admin serves the admin interface and, at /metrics, the figures of Metrics; nil: neither is served. What it leaves
	// nil is given: Metrics, Times, Join and LeaveAndJoin where there is GoOver, Logger, and TLS by the files of Node.TLS,
	// read when somebody connects. Its NotReady is asked when the function has said that it is ready.
	Admin *admin.Config
	// AdminToken is the file of Admin.Token, at most 4 KiB, white space around it cut; SIGHUP reads it anew. Empty: the
	// token is Admin.Token.
	AdminToken string
	// Metrics are the bounds of the metrics.
	Metrics metrics.Config
	// NoLatency has neither the admin interface nor the metrics time anything.
	NoLatency bool
	// NoMemoryLimit leaves the memory limit of the Go runtime as it is. Otherwise Run sets it to nine tenths of what the
	// control groups allow the process (a container's limit, MemoryMax of systemd), unless GOMEMLIMIT or the program has
	// set one: the collector works harder near it, where the kernel would kill the process. LoadAware reads it too.
	NoMemoryLimit bool

	// Rejoin goes on under a new incarnation when the cluster has ended the node (kith.Rejoin); the function is called for
	// each node. Without it Run returns the error, and a supervisor starts the process again.
	Rejoin bool
	// GoOver obeys orders to go over to another cluster (kith join), and goes over by itself when the node has ended as
	// the younger of two clusters of one name. The function is called for the next node. Without it such orders are
	// refused.
	GoOver bool

	// Reload is called on SIGHUP, when the certificates and the token have been read anew, by one goroutine. It returns
	// the names of the settings that it has changed, for the log; an error says that it has changed nothing. Nil: those
	// two are all.
	Reload func(n *kith.Node) (changed []string, err error)
}

// maxToken bounds the file of a token, in bytes.
const maxToken = 4 << 10

// refused is the error of a configuration, which matches kith.ErrBadConfig whichever part is wrong.
type refused struct{ error }

func (r refused) Is(target error) bool { return target == kith.ErrBadConfig }
func (r refused) Unwrap() []error {
	if several, is := r.error.(interface{ Unwrap() []error }); is {
		return several.Unwrap()
	}
	return []error{r.error}
}

// Validate returns all faults of c joined, or nil. Together they match kith.ErrBadConfig, each also the ErrBadConfig of
// its package. It reads the file of the token, and no other.
func (c Config) Validate() error {
	var errs []error
	if c.Bootstrap != nil {
		errs = append(errs, c.Bootstrap.Validate(c.Node))
	} else {
		errs = append(errs, c.Node.Validate())
	}
	errs = append(errs, c.Metrics.Validate())
	if c.Admin != nil {
		_, err := c.admin()
		errs = append(errs, err)
	} else if c.AdminToken != "" {
		errs = append(errs, fmt.Errorf("%w: AdminToken needs Admin", kith.ErrBadConfig))
	}
	if err := errors.Join(errs...); err != nil {
		return refused{err}
	}
	return nil
}

// admin returns the configuration of the admin interface, but for what it is given of the node. Its certificate is the
// node's.
func (c Config) admin() (admin.Config, error) {
	cfg := *c.Admin
	var errs []error
	if c.AdminToken != "" {
		var err error
		if cfg.Token != "" {
			errs = append(errs, fmt.Errorf("%w: Token and AdminToken are given: one of them is one too many",
				admin.ErrBadConfig))
		}
		cfg.Token, err = c.token()
		errs = append(errs, err)
	}
	if cfg.TLS == nil && c.Node.TLS.CertFile != "" {
		shown := &shownCert{cert: c.Node.TLS.CertFile, key: c.Node.TLS.KeyFile}
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: shown.get}
	}
	return cfg, errors.Join(append(errs, cfg.Validate())...)
}

// token returns what the file of the token holds.
func (c Config) token() (string, error) {
	content, err := files.Read(c.AdminToken, maxToken)
	if err != nil {
		return "", fmt.Errorf("%w: AdminToken: %w", admin.ErrBadConfig, err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%w: AdminToken: %s is empty", admin.ErrBadConfig, c.AdminToken)
	}
	return token, nil
}

// Func is what a program does with its node: it registers the types, and returns then, or serves until its context
// ends. Run says more.
type Func = func(ctx context.Context, n *kith.Node) error
