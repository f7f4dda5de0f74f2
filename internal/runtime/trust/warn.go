// Warnings: what an operator is to know of the files and of what ends.

package trust

import (
	"log/slog"
	"os"
	"time"
)

// CheckKeyFile warns of a private key that others can read.
func (t *Store) CheckKeyFile(log *slog.Logger) {
	name := t.cfg.KeyFile
	if info, err := os.Stat(name); name != "" && err == nil && exposed(info) {
		log.Warn("tls: others can read the private key", "file", name, "mode", info.Mode().Perm().String())
	}
}

// exposed reports whether a file can be read or replaced by more than its owner and group. A group that may only read
// it is how a process gets a file of another user: a secret of Kubernetes (fsGroup), a credential.
func exposed(info os.FileInfo) bool {
	mode := info.Mode().Perm()
	return mode&0o037 != 0 || mode&0o040 != 0 && !ofAnother(info)
}

// Warn warns of what ends, each once an hour. Only one goroutine calls it.
func (t *Store) Warn(log *slog.Logger) {
	c := t.State()
	t.warnOfEnd(log, c)
	t.warnOfStale(log, c)
}

// warnOfEnd warns when the own certificate ends within a day, or within a tenth of its life if that is less.
func (t *Store) warnOfEnd(log *slog.Logger, c *State) {
	life := c.ends.Sub(c.Certificate.Leaf.NotBefore)
	left := c.ends.Sub(t.now())
	if left > min(24*time.Hour, life/10) || time.Since(t.warned) < time.Hour {
		return
	}
	t.warned = time.Now()
	log.Warn("tls: this node's certificate ends", "left", left.Round(time.Second), "at", c.ends)
}

// warnOfStale warns of a list that should have been replaced by a newer one. A certificate on it is refused all the
// same, and one that is not on it is let in.
func (t *Store) warnOfStale(log *slog.Logger, c *State) {
	n, one := c.revoked.stale(t.now())
	if n == 0 || time.Since(t.warnedStale) < time.Hour {
		return
	}
	t.warnedStale = time.Now()
	log.Warn("tls: a revocation list was due to be replaced", "issuer", one.issuer, "due", one.due, "lists", n)
}
