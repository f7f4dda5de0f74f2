// kith cert revoke and kith cert crl: the authority's list of certificates that are believed no more.

package command

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// crlFlags are the flags of what writes a revocation list.
type crlFlags struct {
	Dir  string `default:"certs" type:"path" help:"Folder with ca.crt, ca.key and, if there is one, ca.crl."`
	Days int    `default:"90" help:"Days after which nodes warn that the list should be written anew."`
}

// Validate is called by the parser.
func (c *crlFlags) Validate() error {
	if c.Days < 1 || c.Days > 36500 {
		return errors.New("--days must be 1 to 36500")
	}
	return nil
}

// open reads the authority and its list.
func (c *crlFlags) open(e *env.Env) (*pki.Revocations, error) {
	ca, err := authorityIn(e, c.Dir)
	if err != nil {
		return nil, err
	}
	return ca.ReadRevocations(c.Dir)
}

// write writes the list and says so.
func (c *crlFlags) write(e *env.Env, r *pki.Revocations) error {
	valid := time.Duration(c.Days) * day
	if err := r.Write(c.Dir, valid); err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "%s, certificates revoked: %d; give it to every node (--tls-crl), and write it anew before %s\n",
		pki.CRLPath(c.Dir), r.Len(), time.Now().Add(valid).Format(time.DateOnly))
	return nil
}

// authorityIn reads the authority of a folder.
func authorityIn(e *env.Env, dir string) (*pki.CA, error) {
	pair, err := pki.Read(dir, pki.CAName)
	if err != nil {
		return nil, fmt.Errorf("authority: %w (kith cert ca makes one)", err)
	}
	_, key := pki.Paths(dir, pki.CAName)
	if mode, exposed := pki.Exposed(key); exposed {
		fmt.Fprintf(cli.Clean(e.Stderr), "warning: others can read %s (%s): whoever has it makes members\n", key, mode)
	}
	ca, err := pki.ParseCA(pair)
	if err != nil {
		return nil, fmt.Errorf("authority in %s: %w", dir, err)
	}
	return ca, nil
}

// certCRLCmd is the flags of kith cert crl.
type certCRLCmd struct {
	crlFlags
}

// Run writes the list anew, or a first one that is empty.
func (c *certCRLCmd) Run(e *env.Env) error {
	r, err := c.open(e)
	if err != nil {
		return err
	}
	return c.write(e, r)
}

// certRevokeCmd is the flags of kith cert revoke.
type certRevokeCmd struct {
	Names  []string `arg:"" optional:"" name:"name" help:"Names of nodes in that folder, or files of certificates."`
	Serial []string `help:"Serial numbers of certificates, as kith cert show prints them, whose files are lost."`
	crlFlags
}

// Validate is called by the parser.
func (c *certRevokeCmd) Validate() error {
	errs := cli.Faults{c.crlFlags.Validate()}
	errs.Must(len(c.Names)+len(c.Serial) > 0, "name a node, a file or a --serial")
	for _, text := range c.Serial {
		_, err := pki.Serial(text)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Run puts the certificates on the list. Nothing is written unless all of them can be.
func (c *certRevokeCmd) Run(e *env.Env) error {
	r, err := c.open(e)
	if err != nil {
		return err
	}
	var said strings.Builder
	add := func(serial *big.Int, who string) {
		word := "revoked"
		if !r.Add(serial) {
			word = "was revoked before"
		}
		fmt.Fprintf(&said, "%s, serial %x: %s\n", who, serial, word)
	}
	for _, name := range c.Names {
		cert, err := c.certificate(name)
		if err == nil {
			err = r.Issued(cert)
		}
		if err != nil {
			return err
		}
		add(cert.SerialNumber, fmt.Sprintf("%q", cert.Subject))
	}
	for _, text := range c.Serial {
		serial, err := pki.Serial(text)
		if err != nil {
			return err
		}
		add(serial, "certificate")
	}
	if _, err := fmt.Fprint(e.Stdout, said.String()); err != nil {
		return err
	}
	return c.write(e, r)
}

// certificate reads the one of a node of the folder, or of a file.
func (c *certRevokeCmd) certificate(name string) (*x509.Certificate, error) {
	file, _ := pki.Paths(c.Dir, name)
	text, err := files.Read(file, pki.MaxFile)
	if err != nil {
		var other error
		if text, other = files.Read(name, pki.MaxFile); other != nil {
			return nil, fmt.Errorf("%q is no node's name, nor a file: %w", name, errors.Join(err, other))
		}
		file = name
	}
	certs, err := pki.Certificates(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return certs[0], nil
}

// listRows is what a revocation list says, row by row.
func listRows(list *x509.RevocationList, now time.Time) [][2]string {
	due := "never"
	if !list.NextUpdate.IsZero() {
		due = list.NextUpdate.UTC().Format(time.DateTime) + " UTC"
		if now.After(list.NextUpdate) {
			due += ", OVERDUE"
		}
	}
	rows := [][2]string{{"revocation list of", list.Issuer.String()}, {"number", fmt.Sprint(list.Number)},
		{"made", list.ThisUpdate.UTC().Format(time.DateTime) + " UTC"}, {"due", due}}
	for _, e := range list.RevokedCertificateEntries {
		rows = append(rows, [2]string{"revoked", fmt.Sprintf("%x at %s UTC", e.SerialNumber,
			e.RevocationTime.UTC().Format(time.DateTime))})
	}
	return rows
}
