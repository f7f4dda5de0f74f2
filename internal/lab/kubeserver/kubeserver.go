//go:build linux

// A server: the process of kube-apiserver on loopback with an etcd of its own, RBAC, and keys that it alone has.

package kubeserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// Variable names the program where it is not in the PATH.
const Variable = "KITH_KUBE_APISERVER"

// startTime bounds a start, also on a busy machine: the server makes its roles before it is ready.
const startTime = 4 * time.Minute

// Server is an API server of a test's own. Its methods are called one at a time, but Do and those that ask by it.
type Server struct {
	etcdserver.Process
	// Etcd is what it keeps its objects in.
	Etcd *etcdserver.Server
	// Dir is the server's folder. It is temporary.
	Dir string

	program, addr string
	token         string // of one that may do everything
	log           io.Writer
	release       func()
	client        *http.Client
}

// Find returns the program: what Variable names, or kube-apiserver of the PATH. It fails where there is none:
// exec.ErrNotFound.
func Find() (string, error) {
	if path := os.Getenv(Variable); path != "" {
		return exec.LookPath(path)
	}
	return exec.LookPath("kube-apiserver")
}

// New makes the folder of a server that writes its log to a writer, and starts its etcd. It fails where either is not
// installed: exec.ErrNotFound. Remove it.
func New(log io.Writer) (s *Server, err error) {
	s = &Server{log: log, token: rand.Text()}
	if s.program, err = Find(); err != nil {
		return nil, err
	}
	if s.Etcd, err = etcdserver.New(log); err != nil {
		return nil, err
	}
	if s.Dir, err = os.MkdirTemp("", "kith-kube"); err == nil {
		s.addr, s.release, err = port.Hold()
	}
	if err == nil {
		err = s.writeKeys()
	}
	if err == nil {
		err = s.Etcd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// file is the path of a file of the server's own.
func (s *Server) file(name string) string { return filepath.Join(s.Dir, name) }

// writeKeys makes the authority, the server's certificate, the key that signs the tokens of service accounts, and the
// list of those that have a token without being one.
func (s *Server) writeKeys() error {
	ca, err := pki.NewCA("kube", 24*time.Hour)
	if err != nil {
		return err
	}
	until := time.Now().Add(12 * time.Hour)
	server, err := ca.Issue(pki.Request{Name: "kube-apiserver", Hosts: []string{"127.0.0.1"}, Until: until})
	if err != nil {
		return err
	}
	signer, err := ca.Issue(pki.Request{Name: "service-account", Until: until})
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Pair().Cert)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for name, text := range map[string][]byte{"ca.crt": ca.Pair().Cert, "server.crt": server.Cert,
		"server.key": server.Key, "signer.key": signer.Key, "signer.crt": signer.Cert,
		"tokens": []byte(s.token + ",admin,admin,system:masters\n")} {
		if err := os.WriteFile(s.file(name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// URL is where it listens.
func (s *Server) URL() string { return "https://" + s.addr }

// Version returns what the program says of itself.
func (s *Server) Version() (string, error) {
	text, err := exec.Command(s.program, "--version").Output()
	return string(text), err
}

// Start starts it if it does not run, and returns when it is ready, with its objects of before.
func (s *Server) Start() error {
	return s.Process.Start("kube-apiserver", startTime, s.launch, func(ctx context.Context) bool {
		a, err := s.Do(ctx, Request{Path: "/readyz"})
		return err == nil && a.Code == http.StatusOK
	})
}

// launch starts the process.
func (s *Server) launch() error {
	host, at, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.program, "--etcd-servers="+s.Etcd.URL(), "--bind-address="+host, "--secure-port="+at,
		"--advertise-address="+host, "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/24",
		"--tls-cert-file="+s.file("server.crt"), "--tls-private-key-file="+s.file("server.key"),
		"--token-auth-file="+s.file("tokens"), "--authorization-mode=RBAC", "--anonymous-auth=false",
		"--service-account-issuer=https://kube.test", "--service-account-key-file="+s.file("signer.crt"),
		"--service-account-signing-key-file="+s.file("signer.key"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, s.log, s.log
	return s.Launch(cmd)
}

// Remove ends it and its etcd, if they run, and removes their folders.
func (s *Server) Remove() error {
	s.Stop(syscall.SIGKILL)
	err := s.Etcd.Remove()
	if s.release != nil {
		s.release()
	}
	s.release = nil
	if s.Dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(s.Dir))
}
