// How a node that runs is watched: its statistics, and its admin interface.

package command

import (
	"crypto/tls"
	"errors"

	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/service"
)

// watchFlags are flags of kith run.
type watchFlags struct {
	Admin          string   `help:"${serve_help}"`
	AdminHosts     []string `help:"${adminhosts_help}"`
	AdminTokenFile string   `type:"existingfile" placeholder:"FILE" help:"${admintoken_help}"`
	Profiling      bool     `help:"Serve pprof on the admin interface; with a token, only to clients that send it."`

	cli.StatsFlags
}

// adminFaults returns what is wrong with the admin interface of a node that is insecure, or has a certificate, or nil.
func (f *watchFlags) adminFaults(insecure, certified bool) error {
	if f.Admin != "" {
		cfg := f.admin(insecure)
		if certified {
			cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		}
		err := service.Config{Admin: &cfg, AdminToken: f.AdminTokenFile}.Validate()
		return cli.About(err, admin.ErrBadConfig, "Listen", "--admin", "AdminToken", "--admin-token-file", "Token",
			"--admin-token-file", "Hosts", "--admin-hosts")
	}
	if f.AdminTokenFile != "" || f.Profiling || len(f.AdminHosts) > 0 {
		return errors.New("--admin-token-file, --admin-hosts and --profiling need --admin")
	}
	return nil
}

// admin returns the configuration of the admin interface, but for its token.
func (f *watchFlags) admin(insecure bool) admin.Config {
	return admin.Config{Listen: f.Admin, Insecure: insecure, Hosts: f.AdminHosts, Profiling: f.Profiling}
}
