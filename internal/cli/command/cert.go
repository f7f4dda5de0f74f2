// kith cert: a certificate authority, certificates of nodes, and what is in a certificate.

package command

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// certCmd is the commands of kith cert.
type certCmd struct {
	CA     certCACmd     `cmd:"" name:"ca" help:"Make an authority: ca.crt, for every node, and ca.key, for none."`
	Issue  certIssueCmd  `cmd:"" help:"Issue NAME.crt and NAME.key, signed by the authority in the same folder."`
	Revoke certRevokeCmd `cmd:"" help:"Put certificates on ca.crl, the list of those that are believed no more."`
	CRL    certCRLCmd    `cmd:"" name:"crl" help:"Write ca.crl anew, before it is due, or a first one that is empty."`
	Show   certShowCmd   `cmd:"" help:"Show what certificates and revocation lists say."`
}

const day = 24 * time.Hour

// certCACmd is the flags of kith cert ca.
type certCACmd struct {
	Dir   string `default:"certs" type:"path" help:"Folder for ca.crt and ca.key; made if need be."`
	Name  string `default:"kith CA" help:"Name of the authority."`
	Days  int    `default:"3650" help:"Days that it is valid."`
	Force bool   `help:"Replace files that are there."`
}

// Validate is called by the parser.
func (c *certCACmd) Validate() error {
	if c.Days < 1 || c.Days > 36500 {
		return errors.New("--days must be 1 to 36500")
	}
	return nil
}

// Run makes the authority.
func (c *certCACmd) Run(e *env.Env) error {
	ca, err := pki.NewCA(c.Name, time.Duration(c.Days)*day)
	if err != nil {
		return err
	}
	if err := written(c.Dir, pki.CAName, ca.Pair(), c.Force); err != nil {
		return err
	}
	cert, key := pki.Paths(c.Dir, pki.CAName)
	fmt.Fprintf(e.Stdout, "authority %q until %s\n%s: give it to every node (--tls-ca)\n%s: keep it where no node runs\n",
		c.Name, ca.Expires().Format(time.DateOnly), cert, key)
	return nil
}

// written writes a pair and says how to overwrite one.
func written(dir, name string, p pki.Pair, force bool) error {
	err := p.Write(dir, name, force)
	if errors.Is(err, pki.ErrThere) {
		return fmt.Errorf("%w (--force replaces files)", err)
	}
	return err
}

// certIssueCmd is the flags of kith cert issue.
type certIssueCmd struct {
	Names   []string `arg:"" name:"name" help:"Names of the nodes: of their files, and in their certificates."`
	Dir     string   `default:"certs" type:"path" help:"Folder with ca.crt and ca.key."`
	Out     string   `type:"path" help:"Folder for the new files; the same if not given."`
	Cluster string   `default:"kith" help:"Name of the cluster that the nodes are for."`
	Host    []string `help:"Host names and IP addresses of the node, for --tls-verify-host and for clients of its admin interface."`
	Days    int      `default:"365" help:"Days that a certificate is valid."`
	Force   bool     `help:"Replace files that are there; running nodes notice."`
}

// Validate is called by the parser.
func (c *certIssueCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Days >= 1 && c.Days <= 36500, "--days must be 1 to 36500")
	errs.Must(c.Cluster != "" && len(c.Cluster) <= 64, "--cluster must have 1 to 64 bytes")
	errs.Must(len(c.Host) == 0 || len(c.Names) <= 1, "--host is for one name: each node has its own")
	for _, h := range c.Host {
		_, err := kith.ParseAddr(net.JoinHostPort(h, "1"))
		errs.Must(err == nil, "--host=%s is no IP address and no host name", h)
	}
	for i, name := range c.Names {
		errs.Must(!slices.Contains(c.Names[:i], name), "%q is there twice", name)
		if name == pki.CAName {
			errs = append(errs, fmt.Errorf("%q is the authority's name", name))
		} else if err := pki.GoodName(name); err != nil {
			errs = append(errs, err)
		}
	}
	return errs.Err()
}

// Run issues the certificates.
func (c *certIssueCmd) Run(e *env.Env) error {
	ca, err := authorityIn(e, c.Dir)
	if err != nil {
		return err
	}
	out := c.Out
	if out == "" {
		out = c.Dir
	}
	until := time.Now().Add(time.Duration(c.Days) * day)
	for _, name := range c.Names {
		p, err := ca.Issue(pki.Request{Name: name, URIs: []string{kith.ClusterURI(c.Cluster)}, Hosts: c.Host, Until: until})
		if err == nil {
			err = written(out, name, p, c.Force)
		}
		if err != nil {
			return err
		}
		cert, key := pki.Paths(out, name)
		fmt.Fprintf(e.Stdout, "node %q of cluster %q until %s\n%s\n%s\n", name, c.Cluster, until.Format(time.DateOnly), cert,
			key)
	}
	return nil
}

// certShowCmd is the arguments of kith cert show.
type certShowCmd struct {
	Files []string `arg:"" type:"existingfile" help:"PEM files with certificates or revocation lists."`
	JSON  bool     `name:"json" help:"Print each certificate and list as one JSON object on a line of its own."`
}

// Run shows every certificate and list of every file.
func (c *certShowCmd) Run(e *env.Env) error {
	for _, file := range c.Files {
		text, err := files.Read(file, 4*pki.MaxFile)
		if err != nil {
			return err
		}
		tables, err := shown(text, time.Now())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, rows := range tables {
			if c.JSON {
				object := map[string]string{"file": file}
				for _, row := range rows {
					object[row[0]] = row[1]
				}
				if err := json.NewEncoder(e.Stdout).Encode(object); err != nil {
					return err
				}
				continue
			}
			table := make([][]string, len(rows))
			for i, row := range rows {
				table[i] = row[:]
			}
			cli.Table(e.Stdout, table...)
			fmt.Fprintln(e.Stdout)
		}
	}
	return nil
}

// shown is what a text has to say, a table for each list and each certificate.
func shown(text []byte, now time.Time) (tables [][][2]string, err error) {
	lists, err := pki.Lists(text)
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		tables = append(tables, listRows(list, now))
	}
	certs, err := pki.Certificates(text)
	if err != nil && len(lists) == 0 {
		return nil, err
	}
	for _, cert := range certs {
		tables = append(tables, certRows(cert, now))
	}
	return tables, nil
}

// usageNames are the extended usages that matter here.
var usageNames = map[x509.ExtKeyUsage]string{
	x509.ExtKeyUsageServerAuth: "server", x509.ExtKeyUsageClientAuth: "client", x509.ExtKeyUsageAny: "any",
}

// certRows is what a certificate says, row by row.
func certRows(cert *x509.Certificate, now time.Time) [][2]string {
	var uris, hosts, usages []string
	for _, u := range cert.URIs {
		uris = append(uris, u.String())
	}
	hosts = append(hosts, cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	for _, u := range cert.ExtKeyUsage {
		if name := usageNames[u]; name != "" {
			usages = append(usages, name)
		} else {
			usages = append(usages, fmt.Sprintf("other (%d)", u))
		}
	}
	valid := fmt.Sprintf("%s to %s UTC", cert.NotBefore.UTC().Format(time.DateTime),
		cert.NotAfter.UTC().Format(time.DateTime))
	switch {
	case now.After(cert.NotAfter):
		valid += ", EXPIRED"
	case now.Before(cert.NotBefore):
		valid += ", NOT YET"
	default:
		valid += fmt.Sprintf(", %d days left", int(cert.NotAfter.Sub(now)/day))
	}
	rows := [][2]string{{"subject", cert.Subject.String()}, {"issuer", cert.Issuer.String()}, {"valid", valid},
		{"serial", fmt.Sprintf("%x", cert.SerialNumber)}}
	if cert.IsCA {
		rows = append(rows, [2]string{"authority", "yes"})
	} else {
		rows = append(rows, [2]string{"usage", strings.Join(usages, ", ")}, [2]string{"cluster", strings.Join(uris, ", ")},
			[2]string{"hosts", strings.Join(hosts, ", ")})
	}
	return append(rows, [2]string{"key", cert.PublicKeyAlgorithm.String()}, [2]string{"sha256", pki.Fingerprint(cert)})
}
